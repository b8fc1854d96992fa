// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_EXAMPLES_COMMON_TEXT_FILE_HPP
#define BELLMAN_EXAMPLES_COMMON_TEXT_FILE_HPP

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

/// \file
/// What the readers of the examples share: the error that they throw, and lines, words and numbers.

namespace bellman_examples {

/// \brief A place in a file, counted from 1; 0 where there is none.
struct FilePosition {
  std::size_t line = 0;
  std::size_t column = 0;
};

/// \brief A file that is not what it should be. what() is `file:line: sentence` or `file:line:column: sentence`, and
/// `file: sentence` where the file as a whole is meant.
class FileError : public std::runtime_error {
 public:
  FileError(const std::string& path, FilePosition position, const std::string& sentence)
      : std::runtime_error(path + (position.line > 0 ? ':' + std::to_string(position.line) : "") +
                           (position.column > 0 ? ':' + std::to_string(position.column) : "") + ": " + sentence) {}
};

/// \brief Why the last call to the system failed.
inline std::string last_system_error() { return std::generic_category().message(errno); }

/// \brief Call \p use(line, number) for each line of a file, counted from 1, without its end (LF or CRLF).
/// \throws FileError when the file cannot be opened or read
template <class Use>
void for_each_line(const std::string& path, Use use) {
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw FileError(path, {}, "cannot be opened: " + last_system_error());
  std::string line;
  for (std::size_t number = 1; std::getline(stream, line); ++number) {
    if (line.ends_with('\r')) line.pop_back();
    use(std::string_view(line), number);
  }
  // Such as a directory, which opens but has nothing to read.
  if (stream.bad()) throw FileError(path, {}, "cannot be read: " + last_system_error());
}

inline bool is_blank(char c) { return c == ' ' || c == '\t'; }

/// \brief Take the first blank-separated word off \p text; empty where there is none left.
inline std::string_view take_word(std::string_view& text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  std::size_t size = 0;
  while (size < text.size() && !is_blank(text[size])) ++size;
  const std::string_view word = text.substr(0, size);
  text.remove_prefix(size);
  return word;
}

/// \brief The number that all of \p text is; nothing if it is none.
inline std::optional<double> parse_number(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// \brief ASCII only: the same in every locale.
inline char to_upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

/// \brief A character for a message: 'x', or its code where it cannot be printed.
inline std::string quoted(char c) {
  if (c >= ' ' && c <= '~') return std::string("'") + c + "'";
  constexpr char digits[] = "0123456789abcdef";
  const auto code = static_cast<unsigned char>(c);
  return std::string("with code 0x") + digits[code / 16] + digits[code % 16];
}

}  // namespace bellman_examples

#endif
