#include "engines/tied_embedding.hpp"

namespace zeroplan {

void all_reduce_tied_gradient(ProgramBuilder& builder, Stream stream, const TiedGradient& gradient) {
    builder.on_stream(stream,
                      Collective{.kind = CollectiveKind::all_reduce,
                                 .group = GroupKind::embedding_group,
                                 .send = {gradient.buffer},
                                 .receive = {gradient.buffer},
                                 .dtype = gradient.dtype,
                                 .elements = gradient.elements,
                                 .unit = gradient.copy},
                      builder.last(Stream::compute));
}

}  // namespace zeroplan
