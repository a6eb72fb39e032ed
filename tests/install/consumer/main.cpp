#include <zeroplan/version.hpp>

#include <iostream>

int main() {
    std::cout << "zeroplan " << zeroplan::version() << '\n';
}
