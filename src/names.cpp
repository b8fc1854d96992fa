// SPDX-License-Identifier: Apache-2.0
#include <bellman/options.hpp>
#include <bellman/status.hpp>
#include <ostream>

namespace bellman {

const char* to_string(Status status) {
  switch (status) {
    case Status::ok: return "ok";
    case Status::empty: return "empty";
    case Status::impossible: return "impossible";
    case Status::not_a_number: return "not_a_number";
    case Status::bad_symbol: return "bad_symbol";
    case Status::bad_length: return "bad_length";
  }
  return "unknown status";
}

const char* to_string(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum: return "sum";
    case Reduction::mean: return "mean";
    case Reduction::min: return "min";
    case Reduction::max: return "max";
    case Reduction::count: return "count";
  }
  return "unknown reduction";
}

std::ostream& operator<<(std::ostream& stream, Status status) { return stream << to_string(status); }
std::ostream& operator<<(std::ostream& stream, Reduction reduction) { return stream << to_string(reduction); }

}  // namespace bellman
