#include "engines/megatron_flights.hpp"

namespace zeroplan {

void MegatronFlights::allocate_retained() {
    retained_.assign(stage_.chunk_count(), {});
    for (Chunk c = 0; c < stage_.chunk_count(); ++c) {
        if (stage_.has_embedding(c)) continue;
        retained_[c].value = stage_.allocate_input(builder_, c);
        retained_[c].gradient = stage_.allocate_input_gradient(builder_, c);
    }
    initial_retained_ = retained_;
}

void MegatronFlights::forward(std::uint32_t micro_batch, Chunk c) {
    const Pass pass{micro_batch, c};
    InFlight& flight = in_flight_[pass];
    if (!stage_.has_embedding(c)) flight.input.value = stage_.allocate_input(builder_, c);
    messages_.receive_activations(c);
    if (stage_.is_interleaved())
        retain(pass);
    else
        free_if_there(builder_, retained_[c]);
    passes_.forward(flight, c);
    messages_.send_activations(c);
    if (!stage_.is_interleaved()) {
        free_if_there(builder_, held_.input);
    } else if (const auto before = std::exchange(last_forwarded_, pass)) {
        release_unless_retained(*before);
    }
}

BufferId MegatronFlights::take_output_gradient(Chunk c) {
    const BufferId ahead = std::exchange(received_gradient_, no_buffer);
    return ahead != no_buffer ? ahead : stage_.allocate_output_gradient(builder_, c);
}

void MegatronFlights::backward(std::uint32_t micro_batch, Chunk c, bool last) {
    const Pass pass{micro_batch, c};
    InFlight& flight = in_flight_.at(pass);
    if (!stage_.is_interleaved()) free_if_there(builder_, held_.input);
    BufferId gradient = no_buffer;
    if (!stage_.has_head(c)) {
        gradient = take_output_gradient(c);
        builder_.free_if_there(held_.output_gradient);
    }
    messages_.receive_gradients(c);
    passes_.backward(flight, c, gradient, last);
    messages_.send_gradients(c);
    if (!stage_.is_interleaved()) {
        held_ = {flight.input, gradient};
        in_flight_.erase(pass);
        return;
    }
    builder_.free_if_there(gradient);
    // The variable of the last gradient sent back is assigned again only now.
    if (!is_retained(pass)) std::swap(held_.input.gradient, flight.input.gradient);
    release_unless_retained(pass);
}

void MegatronFlights::pass_alone(Chunk c) {
    InFlight flight;
    if (!stage_.has_embedding(c)) flight.input.value = stage_.allocate_input(builder_, c);
    passes_.forward(flight, c);
    BufferId gradient = stage_.has_head(c) ? no_buffer : stage_.allocate_output_gradient(builder_, c);
    passes_.backward(flight, c, gradient, false);
    builder_.free_if_there(gradient);
    free_if_there(builder_, flight.input);
}

void MegatronFlights::restore(const Held& held) {
    free_if_there(builder_, held_.input);
    builder_.free_if_there(held_.output_gradient);
    for (const BufferId buffer : {held.input.value, held.input.gradient, held.output_gradient})
        if (buffer != no_buffer) builder_.allocate_again(buffer);
    held_ = held;
}

/// Inputs that chunks of an interleaved schedule keep: the new one takes the place of the one before.
void MegatronFlights::retain(const Pass& pass) {
    const auto [micro_batch, c] = pass;
    const auto previous = last_forward_.find(c);
    if (previous == last_forward_.end()) {
        free_if_there(builder_, retained_[c]);
        last_forward_[c] = micro_batch;
        return;
    }
    const Pass before{std::exchange(previous->second, micro_batch), c};
    release_unless_retained(before);
}

/// The chunk's last input, and that of the last forward of all, whose output still leads to it.
bool MegatronFlights::is_retained(const Pass& pass) const {
    return last_forward_.at(pass.second) == pass.first || last_forwarded_ == pass;
}

void MegatronFlights::release_unless_retained(const Pass& pass) {
    const auto found = in_flight_.find(pass);
    if (found == in_flight_.end() || found->second.walk != nullptr) return;  // still in flight
    if (is_retained(pass)) return;
    free_if_there(builder_, found->second.input);
    in_flight_.erase(found);
}

void MegatronFlights::end() {
    builder_.free_if_there(held_.output_gradient);
    free_if_there(builder_, held_.input);
    for (Chunk c = 0; c < stage_.chunk_count(); ++c) {
        if (stage_.has_embedding(c)) continue;
        if (stage_.is_interleaved()) free_if_there(builder_, in_flight_.at({last_forward_.at(c), c}).input);
        retained_[c] = initial_retained_[c];
        builder_.allocate_again(retained_[c].value);
        builder_.allocate_again(retained_[c].gradient);
    }
}

}  // namespace zeroplan
