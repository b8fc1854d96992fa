// SPDX-License-Identifier: Apache-2.0
#include "support/case_file.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <new>
#include <numbers>
#include <random>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

namespace bellman::support {
namespace {

using reference::Reduction;

/// 32 GiB of doubles: beyond every case that is meant, far below a product that overflows.
constexpr std::size_t most_elements = std::size_t{1} << 32;

constexpr std::pair<std::string_view, Reduction> reductions[] = {{"sum", Reduction::sum},
                                                                 {"mean", Reduction::mean},
                                                                 {"min", Reduction::min},
                                                                 {"max", Reduction::max},
                                                                 {"count", Reduction::count}};

/// How a metric of a goal is written, and what may be asked of it.
struct MetricRules {
  std::string_view name;
  Goal::Metric metric;
  bool is_upper_limit;
  bool may_be_in_graph;
  std::initializer_list<std::string_view> backends;
};

const MetricRules metrics[] = {
    {"time_us", Goal::Metric::time, true, true, {"Serial", "OpenMP", "Cuda"}},
    {"cells/s", Goal::Metric::cell_rate, false, true, {"Serial", "OpenMP", "Cuda"}},
    {"read_share", Goal::Metric::read_share, false, true, {"Serial", "OpenMP", "Cuda"}},
    {"fma_share", Goal::Metric::fma_share, false, true, {"Serial", "OpenMP", "Cuda"}},
    {"submit_us", Goal::Metric::submit_time, true, false, {"Cuda"}},
    {"speed_up_per_core", Goal::Metric::speed_up_per_core, false, false, {"Serial", "OpenMP"}},
    {"scaling_at_2", Goal::Metric::scaling_at_2, false, false, {"OpenMP"}}};

std::string quoted(const std::string& text) { return '"' + text + '"'; }

std::string kind_of(const YAML::Node& node) {
  if (node.IsScalar()) return quoted(node.Scalar());
  if (node.IsSequence()) return "a sequence";
  if (node.IsMap()) return "a mapping";
  return "nothing";
}

/// A scalar written without quotes; "1.0" in quotes is a string.
bool is_plain(const YAML::Node& node) { return node.IsScalar() && node.Tag() == "?"; }

/// All of the text as one number; a leading + is allowed, which std::from_chars leaves out.
template <class Number>
std::errc parse_number(std::string_view text, Number& number) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return error;
  return end == text.data() + text.size() ? std::errc{} : std::errc::invalid_argument;
}

double unit_interval(std::uint64_t draw) { return static_cast<double>(draw >> 11) * 0x1p-53; }

/// Where each document of a text starts, the first two at most.
///
/// YAML::Load passes over a second document in silence, and YAML::LoadAll of yaml-cpp 0.7 never ends on a stray comma.
std::vector<YAML::Mark> first_two_documents(const std::string& text) {
  class Starts : public YAML::EventHandler {
   public:
    void OnDocumentStart(const YAML::Mark& mark) override { marks.push_back(mark); }
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
    void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
    void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
    void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
    void OnSequenceEnd() override {}
    void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
    void OnMapEnd() override {}

    std::vector<YAML::Mark> marks;
  };
  std::istringstream in(text);
  YAML::Parser parser(in);
  Starts starts;
  while (starts.marks.size() < 2 && parser.HandleNextDocument(starts)) {
  }
  return starts.marks;
}

struct Extent {
  std::string name;
  std::size_t size;
  YAML::Mark mark;
};

using Shape = std::vector<Extent>;

class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  std::vector<Case> read(const std::string& text) const {
    try {
      const std::vector<YAML::Mark> documents = first_two_documents(text);
      if (documents.empty()) fail(YAML::Mark{}, "the file holds no case");
      if (documents.size() > 1) fail(documents[1], "a second YAML document; list several cases under the key cases");
      return cases(YAML::Load(text));
    } catch (const YAML::Exception& error) {
      fail(error.mark, "not valid YAML: " + error.msg);
    }
  }

 private:
  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& sentence) const {
    // yaml-cpp has no mark for what is not there, such as the content of an empty file: then say line 1, column 1.
    const int line = std::max(mark.line, 0) + 1;
    const int column = std::max(mark.column, 0) + 1;
    throw CaseFileError(file_ + ':' + std::to_string(line) + ':' + std::to_string(column) + ": " + sentence);
  }

  // Keys
  // ---------------------------------------------------------------------------------------------------------------

  /// \p map is a mapping in which each key is known, stands once and has a value.
  void check_keys(const YAML::Node& map, const std::string& what, const std::set<std::string>& known) const {
    if (!map.IsMap()) fail(map.Mark(), what + " must be a mapping, got " + kind_of(map));
    std::set<std::string> seen;
    for (const auto& entry : map) {
      const YAML::Node& key = entry.first;
      if (!key.IsScalar()) fail(key.Mark(), "a key must be a string, got " + kind_of(key));
      if (!known.contains(key.Scalar())) {
        std::string names;
        for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
        fail(key.Mark(), what + " has no key " + quoted(key.Scalar()) + "; its keys are " + names);
      }
      if (!seen.insert(key.Scalar()).second) fail(key.Mark(), "the key " + quoted(key.Scalar()) + " stands twice");
      // Here, because yaml-cpp places an empty value at the next token, which is on another line.
      if (entry.second.IsNull()) fail(key.Mark(), "the key " + quoted(key.Scalar()) + " has no value");
    }
  }

  YAML::Node required(const YAML::Node& map, const std::string& key) const {
    const YAML::Node value = map[key];
    if (!value || value.IsNull()) fail(map.Mark(), "the key " + quoted(key) + " is missing");
    return value;
  }

  // Scalars
  // ------------------------------------------------------------------------------------------------------------

  std::string text(const YAML::Node& node, const std::string& what) const {
    if (!node.IsScalar()) fail(node.Mark(), what + " must be a string, got " + kind_of(node));
    return node.Scalar();
  }

  double real(const YAML::Node& node, const std::string& what) const {
    double number = 0;
    const std::errc error = is_plain(node) ? parse_number(node.Scalar(), number) : std::errc::invalid_argument;
    if (error == std::errc::result_out_of_range) {
      fail(node.Mark(), what + " is out of the range of double: " + node.Scalar());
    }
    // std::from_chars takes "inf" and "nan", which in YAML are strings; there the numbers begin with a dot.
    if (error == std::errc{} && std::isfinite(number)) return number;
    if (is_plain(node) && node.Scalar().find('.') != std::string::npos && YAML::convert<double>::decode(node, number) &&
        !std::isfinite(number)) {
      return number;
    }
    fail(node.Mark(), what + " must be a number, got " + kind_of(node));
  }

  std::int64_t integer(const YAML::Node& node, const std::string& what) const {
    std::int64_t number = 0;
    const std::errc error = is_plain(node) ? parse_number(node.Scalar(), number) : std::errc::invalid_argument;
    if (error == std::errc::result_out_of_range) {
      fail(node.Mark(), what + " is out of the range of 64-bit integers: " + node.Scalar());
    }
    if (error != std::errc{}) fail(node.Mark(), what + " must be an integer, got " + kind_of(node));
    return number;
  }

  bool boolean(const YAML::Node& node, const std::string& what) const {
    bool value = false;
    if (!is_plain(node) || !YAML::convert<bool>::decode(node, value)) {
      fail(node.Mark(), what + " must be true or false, got " + kind_of(node));
    }
    return value;
  }

  std::uint8_t mask_bit(const YAML::Node& node, const std::string& what) const {
    bool value = false;
    if (is_plain(node)) {
      if (node.Scalar() == "0" || node.Scalar() == "1") return node.Scalar() == "1";
      if (YAML::convert<bool>::decode(node, value)) return value;
    }
    fail(node.Mark(), what + " must be 0, 1, true or false, got " + kind_of(node));
  }

  // Sizes and arrays
  // ---------------------------------------------------------------------------------------------------

  std::uint64_t not_negative(const YAML::Node& map, const std::string& key) const {
    const YAML::Node node = required(map, key);
    const std::int64_t number = integer(node, key);
    if (number < 0) fail(node.Mark(), key + " must not be negative, got " + std::to_string(number));
    return static_cast<std::uint64_t>(number);
  }

  Extent extent(const YAML::Node& map, const std::string& key) const {
    const Extent out{key, not_negative(map, key), required(map, key).Mark()};
    volume({out});
    return out;
  }

  static std::string description(const Shape& shape) {
    std::string out;
    for (const Extent& e : shape) out += (out.empty() ? "" : " * ") + e.name + ' ' + std::to_string(e.size);
    return out;
  }

  std::size_t volume(const Shape& shape) const {
    std::size_t product = 1;
    for (const Extent& e : shape) {
      if (e.size != 0 && product > most_elements / e.size) {
        fail(e.mark, description(shape) + " is more than " + std::to_string(most_elements) + " elements");
      }
      product *= e.size;
    }
    return product;
  }

  /// The array under \p key: listed, each element by read_element, or drawn by \p generate(node, values).
  template <class Element, class ReadElement, class Generate>
  std::vector<Element> array(const YAML::Node& map, const std::string& key, const Shape& shape,
                             const ReadElement& read_element, const Generate& generate) const {
    const YAML::Node node = required(map, key);
    const std::size_t count = volume(shape);
    try {
      std::vector<Element> values;
      if (node.IsMap()) {
        values.resize(count);
        generate(node, values);
        return values;
      }
      if (!node.IsSequence()) fail(node.Mark(), key + " must be a sequence, got " + kind_of(node));
      if (node.size() != count) {
        fail(node.Mark(), key + " has " + std::to_string(node.size()) + " elements, expected " + std::to_string(count) +
                              " (" + description(shape) + ")");
      }
      values.reserve(count);
      const std::string what = "an element of " + key;
      for (const YAML::Node& element : node) values.push_back(read_element(element, what));
      return values;
    } catch (const std::bad_alloc&) {
      fail(node.Mark(), key + " does not fit in memory: " + std::to_string(count) + " elements");
    }
  }

  /// The engine of a generator, whose distribution must be \p distribution and whose other key is \p parameter, if any.
  std::mt19937_64 engine(const YAML::Node& node, const std::string& distribution, const std::string& parameter) const {
    std::set<std::string> known{"random", "seed"};
    if (!parameter.empty()) known.insert(parameter);
    check_keys(node, "the generator of this array", known);
    const YAML::Node random = required(node, "random");
    if (text(random, "random") != distribution) {
      fail(random.Mark(), "random must be " + distribution + " for this array, got " + kind_of(random));
    }
    return std::mt19937_64(not_negative(node, "seed"));
  }

  std::vector<double> reals(const YAML::Node& map, const std::string& key, const Shape& shape) const {
    return array<double>(
        map, key, shape, [&](const YAML::Node& node, const std::string& what) { return real(node, what); },
        [&](const YAML::Node& node, std::vector<double>& values) {
          std::mt19937_64 draw = engine(node, "normal", "scale");
          const double scale = node["scale"] ? real(node["scale"], "scale") : 1.0;
          if (!std::isfinite(scale)) fail(node["scale"].Mark(), "scale must be finite");
          for (std::size_t k = 0; k < values.size(); k += 2) {
            const double radius = scale * std::sqrt(-2 * std::log(1 - unit_interval(draw())));
            const double angle = 2 * std::numbers::pi * unit_interval(draw());
            values[k] = radius * std::cos(angle);
            if (k + 1 < values.size()) values[k + 1] = radius * std::sin(angle);
          }
        });
  }

  /// Integers; drawn ones lie in [0, end).
  std::vector<std::int64_t> integers(const YAML::Node& map, const std::string& key, const Shape& shape,
                                     std::size_t end) const {
    return array<std::int64_t>(
        map, key, shape, [&](const YAML::Node& node, const std::string& what) { return integer(node, what); },
        [&](const YAML::Node& node, std::vector<std::int64_t>& values) {
          std::mt19937_64 draw = engine(node, "uniform", "");
          if (end == 0 && !values.empty()) fail(node.Mark(), key + " cannot be drawn: there is no symbol");
          for (std::int64_t& value : values) value = static_cast<std::int64_t>(draw() % end);
        });
  }

  std::optional<std::vector<std::int64_t>> lengths(const YAML::Node& map, const Extent& count,
                                                   const Extent& largest) const {
    const YAML::Node node = map["lengths"];
    if (!node) return std::nullopt;
    std::vector<std::int64_t> values = integers(map, "lengths", {count}, largest.size + 1);
    for (std::size_t k = 0; k < values.size(); ++k) {
      if (values[k] < 0 || static_cast<std::uint64_t>(values[k]) > largest.size) {
        fail(node[k].Mark(), "an element of lengths must lie in [0, " + largest.name + "] = [0, " +
                                 std::to_string(largest.size) + "], got " + std::to_string(values[k]));
      }
    }
    return values;
  }

  std::vector<std::uint8_t> mask(const YAML::Node& map, const Shape& shape) const {
    return array<std::uint8_t>(
        map, "mask", shape, [&](const YAML::Node& node, const std::string& what) { return mask_bit(node, what); },
        [&](const YAML::Node& node, std::vector<std::uint8_t>& values) {
          std::mt19937_64 draw = engine(node, "bernoulli", "probability");
          const double probability = node["probability"] ? real(node["probability"], "probability") : 0.5;
          if (!(probability >= 0 && probability <= 1)) {
            fail(node["probability"].Mark(), "probability must lie in [0, 1], got " + kind_of(node["probability"]));
          }
          for (std::uint8_t& value : values) value = unit_interval(draw()) < probability;
        });
  }

  struct ExpectedArray {
    std::string key;
    Shape shape;
    std::optional<std::vector<double>>* values;
  };

  void expected(const YAML::Node& map, const std::vector<ExpectedArray>& arrays) const {
    const YAML::Node node = map["expected"];
    if (!node) return;
    std::set<std::string> known;
    for (const ExpectedArray& each : arrays) known.insert(each.key);
    check_keys(node, "expected", known);
    for (const ExpectedArray& each : arrays) {
      const YAML::Node listed = node[each.key];
      if (!listed) continue;
      if (listed.IsMap()) fail(listed.Mark(), "expected values must be listed, not drawn");
      *each.values = reals(node, each.key, each.shape);
    }
  }

  // Cases
  // --------------------------------------------------------------------------------------------------------------

  std::vector<Case> cases(const YAML::Node& document) const {
    const std::string stem = std::filesystem::path(file_).stem().string();
    if (!document.IsMap()) fail(document.Mark(), "a case file must hold a mapping, got " + kind_of(document));
    if (!document["cases"]) return {one_case(document, stem)};
    check_keys(document, "a file of several cases", {"cases"});
    const YAML::Node list = document["cases"];
    if (!list.IsSequence()) fail(list.Mark(), "cases must be a sequence, got " + kind_of(list));
    if (list.size() == 0) fail(list.Mark(), "cases is empty");
    std::vector<Case> out;
    for (const YAML::Node& map : list) out.push_back(one_case(map, stem + '#' + std::to_string(out.size() + 1)));
    return out;
  }

  Case one_case(const YAML::Node& map, const std::string& default_name) const {
    if (!map.IsMap()) fail(map.Mark(), "a case must be a mapping, got " + kind_of(map));
    const YAML::Node operation = required(map, "operation");
    Case out;
    out.file = file_;
    out.operation = text(operation, "operation");
    out.problem = problem(map, out.operation, operation.Mark());
    out.name = map["name"] ? text(map["name"], "name") : default_name;
    if (const YAML::Node node = map["tolerance"]) {
      out.tolerance = real(node, "tolerance");
      if (!(std::isfinite(*out.tolerance) && *out.tolerance >= 0)) {
        fail(node.Mark(), "tolerance must be finite and not negative, got " + kind_of(node));
      }
    }
    if (const YAML::Node node = map["repeat"]) {
      out.repeat = extent(map, "repeat").size;
      if (out.repeat == 0) fail(node.Mark(), "repeat must be at least 1, got 0");
    }
    if (const YAML::Node node = map["goal"]) out.goal = goal(node);
    return out;
  }

  /// \p text, which must be one of the names.
  template <class Names>
  void check_choice(const YAML::Node& node, const std::string& what, const Names& names) const {
    const std::string given = text(node, what);
    std::string known;
    for (const std::string_view name : names) {
      if (name == given) return;
      known += (known.empty() ? "" : ", ") + std::string(name);
    }
    fail(node.Mark(), what + " must be one of " + known + ", got " + kind_of(node));
  }

  Goal goal(const YAML::Node& map) const {
    check_keys(map, "a goal", {"metric", "in_graph", "at_most", "at_least", "backend", "type"});
    const YAML::Node metric = required(map, "metric");
    std::vector<std::string_view> names;
    for (const MetricRules& each : metrics) names.push_back(each.name);
    check_choice(metric, "metric", names);
    const MetricRules& rules = metrics[std::ranges::find(names, metric.Scalar()) - names.begin()];
    Goal out;
    out.metric = rules.metric;

    const YAML::Node backend = required(map, "backend");
    check_choice(backend, "the backend of " + metric.Scalar(), rules.backends);
    out.backend = backend.Scalar();
    const YAML::Node type = required(map, "type");
    check_choice(type, "type", std::initializer_list<std::string_view>{"float", "double"});
    out.is_double = type.Scalar() == "double";

    if (const YAML::Node node = map["in_graph"]) {
      out.in_graph = boolean(node, "in_graph");
      if (out.in_graph && !rules.may_be_in_graph) fail(node.Mark(), metric.Scalar() + " is not measured in a graph");
      if (out.in_graph && out.backend != "Cuda") fail(node.Mark(), out.backend + " has no graphs to measure in");
    }
    out.is_upper_limit = rules.is_upper_limit;
    const std::string key = out.is_upper_limit ? "at_most" : "at_least";
    const std::string other = out.is_upper_limit ? "at_least" : "at_most";
    if (map[other]) fail(map[other].Mark(), "a goal for " + metric.Scalar() + " has a limit " + key + ", not " + other);
    const YAML::Node limit = required(map, key);
    out.limit = real(limit, key);
    if (!(std::isfinite(out.limit) && out.limit > 0)) {
      fail(limit.Mark(), key + " must be finite and positive, got " + kind_of(limit));
    }
    return out;
  }

  decltype(Case::problem) problem(const YAML::Node& map, const std::string& operation, const YAML::Mark& mark) const {
    if (operation == "smith_waterman") return smith_waterman(map);
    if (operation == "hmm_log_likelihood") return hmm(map);
    std::string known = "smith_waterman, hmm_log_likelihood";
    for (const auto& [name, reduction] : reductions) {
      const std::string full_name = "masked_" + std::string(name);
      if (operation == full_name) return masked_reduce(map, std::string(name), reduction);
      known += ", " + full_name;
    }
    fail(mark, "the operation " + quoted(operation) + " is not one of a case file, which are " + known);
  }

  void check_case_keys(const YAML::Node& map, const std::string& operation, std::set<std::string> own) const {
    own.insert({"operation", "name", "tolerance", "expected", "repeat", "goal"});
    check_keys(map, "a case of " + operation, own);
  }

  SmithWatermanCase smith_waterman(const YAML::Node& map) const {
    check_case_keys(map, "smith_waterman", {"batch", "rows", "columns", "gap", "temperature", "scores"});
    const Extent batch = extent(map, "batch");
    const Extent rows = extent(map, "rows");
    const Extent columns = extent(map, "columns");
    const YAML::Node temperature = required(map, "temperature");
    SmithWatermanCase out;
    out.batch = batch.size;
    out.rows = rows.size;
    out.columns = columns.size;
    out.gap = real(required(map, "gap"), "gap");
    out.temperature = real(temperature, "temperature");
    if (!(std::isfinite(out.temperature) && out.temperature >= 0)) {
      fail(temperature.Mark(), "temperature must be finite and not negative, got " + kind_of(temperature));
    }
    out.scores = reals(map, "scores", {batch, rows, columns});
    expected(map, {{"score", {batch}, &out.expected.score},
                   {"score_gradient", {batch, rows, columns}, &out.expected.score_gradient}});
    return out;
  }

  HmmCase hmm(const YAML::Node& map) const {
    check_case_keys(map, "hmm_log_likelihood",
                    {"batch", "length", "states", "symbols", "log_init", "log_trans", "log_emit", "observations",
                     "normalised", "lengths"});
    const Extent batch = extent(map, "batch");
    const Extent length = extent(map, "length");
    const Extent states = extent(map, "states");
    const Extent symbols = extent(map, "symbols");
    HmmCase out;
    out.batch = batch.size;
    out.length = length.size;
    out.model.states = states.size;
    out.model.symbols = symbols.size;
    out.model.log_init = reals(map, "log_init", {states});
    out.model.log_trans = reals(map, "log_trans", {states, states});
    out.model.log_emit = reals(map, "log_emit", {states, symbols});
    if (const YAML::Node node = map["normalised"]) out.normalised = boolean(node, "normalised");
    out.observations = integers(map, "observations", {batch, length}, symbols.size);
    out.lengths = lengths(map, batch, length);
    expected(map, {{"log_likelihood", {batch}, &out.expected.log_likelihood},
                   {"log_init_gradient", {states}, &out.expected.log_init_gradient},
                   {"log_trans_gradient", {states, states}, &out.expected.log_trans_gradient},
                   {"log_emit_gradient", {states, symbols}, &out.expected.log_emit_gradient}});
    return out;
  }

  MaskedReduceCase masked_reduce(const YAML::Node& map, const std::string& name, Reduction reduction) const {
    check_case_keys(map, "masked_" + name, {"ranks", "columns", "values", "mask", "lengths"});
    const Extent ranks = extent(map, "ranks");
    const Extent columns = extent(map, "columns");
    MaskedReduceCase out;
    out.reduction = reduction;
    out.ranks = ranks.size;
    out.columns = columns.size;
    out.values = reals(map, "values", {ranks, columns});
    if (map["mask"] && map["lengths"]) fail(map["lengths"].Mark(), "mask and lengths exclude each other");
    if (!map["mask"] && !map["lengths"]) fail(map.Mark(), "one of the keys \"mask\" and \"lengths\" is missing");
    if (map["mask"]) out.mask = mask(map, {ranks, columns});
    out.lengths = lengths(map, ranks, columns);
    expected(map, {{name, {columns}, &out.expected}});
    return out;
  }

  std::string file_;
};

}  // namespace

std::vector<Case> parse_case_file(const std::string& text, const std::string& file) { return Reader(file).read(text); }

std::vector<Case> read_case_file(const std::string& file) {
  const auto cannot_open = [&](std::errc reason) {
    return CaseFileError(file + ": cannot be opened: " + std::make_error_code(reason).message());
  };
  // A directory opens like a file and then reads as an empty one.
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) throw cannot_open(std::errc::is_a_directory);
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  if (!in) throw cannot_open(errno != 0 ? static_cast<std::errc>(errno) : std::errc::io_error);
  return parse_case_file(std::string(std::istreambuf_iterator<char>(in), {}), file);
}

}  // namespace bellman::support
