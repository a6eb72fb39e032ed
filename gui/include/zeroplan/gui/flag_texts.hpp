#pragma once
#include <QStringList>
#include <string>

namespace zeroplan::gui {

// Keys of `what_if` as the command line's flags write them: the inverse of core's …_setting() functions. All
// take the key's JSON text; a JSON string, which is what could not be read, is given back as it was typed.

/// [{"rank": 5, "factor": 0.8}, …] and [{"link": "nic:9", …}] → "5=0.8", "nic:9=0.5"; one a flag.
QStringList factor_texts(const std::string& json);
/// {"kind": "fat_tree", …} → "fat-tree:4:2", {"kind": "torus", …} → "torus:4x4x2".
QStringList fabric_texts(const std::string& json);
/// [0, 1, 2, 8] → "0-2,8".
QStringList placement_texts(const std::string& json);
/// {"file": "b.json", …} → "b.json"; of a job that a scenario file brings, its name.
QStringList background_texts(const std::string& json);
/// 180000000 → "50000h": the largest of y, d, h, m that it is a whole number of, else seconds.
QStringList duration_texts(const std::string& json);
/// As it is written.
QStringList number_texts(const std::string& json);

}  // namespace zeroplan::gui
