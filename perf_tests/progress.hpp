// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_PERF_TESTS_PROGRESS_HPP
#define BELLMAN_PERF_TESTS_PROGRESS_HPP

#include <unistd.h>

#include <cstddef>
#include <iostream>
#include <string>

namespace bellman::perf {

/// \brief One line on stderr that tells a person at a terminal what is being worked on; silent elsewhere.
class Progress {
 public:
  Progress() = default;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  void show(const std::string& text) {
    if (!is_terminal_) return;
    clear();
    std::cerr << text << std::flush;
    width_ = text.size();
  }

  /// Removes the line, before anything else is printed.
  void clear() {
    if (width_ > 0) std::cerr << '\r' << std::string(width_, ' ') << '\r' << std::flush;
    width_ = 0;
  }

 private:
  bool is_terminal_ = isatty(STDERR_FILENO) != 0;
  std::size_t width_ = 0;
};

}  // namespace bellman::perf

#endif
