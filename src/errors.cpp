// SPDX-License-Identifier: Apache-2.0
#include <bellman/impl/views.hpp>
#include <sstream>

namespace bellman::impl {

void throw_extent(std::string_view function, std::string_view view, int axis, std::size_t got, std::size_t wanted,
                  std::string_view meaning) {
  std::ostringstream message;
  message << function << ": view \"" << view << "\" has extent(" << axis << ") = " << got << ", expected " << wanted
          << " (" << meaning << ")";
  throw ShapeError(message.str());
}

void throw_overlap(std::string_view function, std::string_view output, std::string_view other) {
  std::ostringstream message;
  message << function << ": output view \"" << output << "\" shares memory with view \"" << other
          << "\"; give it memory of its own";
  throw AliasError(message.str());
}

void throw_workspace(std::string_view function, std::size_t got, std::size_t wanted) {
  std::ostringstream message;
  message << function << ": view \"workspace\" has " << got << " contiguous bytes, expected at least " << wanted << " ("
          << function << "_workspace_size)";
  throw ShapeError(message.str());
}

void throw_option(std::string_view function, std::string_view option, double got, std::string_view wanted) {
  std::ostringstream message;
  message << function << ": option \"" << option << "\" is " << got << ", expected " << wanted;
  throw OptionError(message.str());
}

}  // namespace bellman::impl
