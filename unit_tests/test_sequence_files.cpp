// SPDX-License-Identifier: Apache-2.0
// The readers of the examples: what they read, and the place and sentence of each error.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "../examples/common/fasta.hpp"
#include "../examples/common/hmm_model_file.hpp"
#include "../examples/common/substitution_matrix.hpp"

namespace {

using namespace bellman_examples;

/// A file of the given text in a folder of the running test's own: tests run side by side.
class SequenceFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "bellman_sequence_files_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = folder_ + "/input";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  const std::string& file(const std::string& text) {
    std::ofstream(path_, std::ios::binary) << text;
    return path_;
  }

  /// The message of \p read(), without the path at its start.
  template <class Read>
  std::string error_of(Read read) {
    try {
      read();
    } catch (const FileError& error) {
      const std::string what = error.what();
      EXPECT_EQ(what.substr(0, path_.size()), path_);
      return what.substr(path_.size());
    }
    return "no error";
  }
  std::string fasta_error(const std::string& text) {
    return error_of([&] { read_fasta(file(text)); });
  }
  std::string matrix_error(const std::string& text) {
    return error_of([&] { read_substitution_matrix(file(text)); });
  }
  std::string model_error(const std::string& text) {
    return error_of([&] { read_hmm_model(file(text)); });
  }

  std::string folder_;
  std::string path_;
};

using FastaReader = SequenceFiles;
using MatrixReader = SequenceFiles;
using HmmModelReader = SequenceFiles;

// FASTA

TEST_F(FastaReader, ReadsRecords) {
  const auto records =
      read_fasta(file("; a comment\n"
                      "\n"
                      ">one first protein \n"
                      "ACD\n"
                      "\n"
                      "; another comment\n"
                      "ef*\n"
                      ">two\n"
                      "  G H\tI  \n"
                      ">  three\n"
                      "K"));
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].name, "one");
  EXPECT_EQ(records[0].description, "first protein");
  EXPECT_EQ(records[0].sequence, "ACDEF*");
  EXPECT_EQ(records[0].line, 3u);
  EXPECT_EQ(records[1].name, "two");
  EXPECT_EQ(records[1].description, "");
  EXPECT_EQ(records[1].sequence, "GHI");
  EXPECT_EQ(records[1].line, 8u);
  EXPECT_EQ(records[2].name, "three");
  EXPECT_EQ(records[2].sequence, "K");
}

TEST_F(FastaReader, LineEndsOfWindowsChangeNothing) {
  const auto records = read_fasta(file("; comment\r\n>one a b\r\nACD\r\n\r\nEF\r\n>two\r\nG\r\n"));
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].name, "one");
  EXPECT_EQ(records[0].description, "a b");
  EXPECT_EQ(records[0].sequence, "ACDEF");
  EXPECT_EQ(records[1].name, "two");
  EXPECT_EQ(records[1].sequence, "G");
}

TEST_F(FastaReader, TextBeforeTheFirstRecord) {
  EXPECT_EQ(fasta_error("; comment\n\nACD\n>one\nACD\n"),
            ":3: Text before the first record: a FASTA record starts with a line '>name'.");
}

TEST_F(FastaReader, RecordWithoutASequence) {
  EXPECT_EQ(fasta_error(">one\nA\n>two\n\n; nothing\n>three\nC\n"), ":3: The record \"two\" has no sequence.");
  EXPECT_EQ(fasta_error(">one\nA\n>last\n"), ":3: The record \"last\" has no sequence.");
}

TEST_F(FastaReader, RecordWithoutAName) {
  EXPECT_EQ(fasta_error(">one\nA\n> \nC\n"), ":3: The record has no name: one must follow the '>'.");
}

TEST_F(FastaReader, IllegalCharacter) {
  const std::string rest = ", which is none of ABCDEFGHIJKLMNOPQRSTUVWXYZ*.";
  EXPECT_EQ(fasta_error(">one\nACD\nA-D\n"), ":3: The sequence \"one\" holds the character '-'" + rest);
  EXPECT_EQ(fasta_error(">one\nAC1\n"), ":2: The sequence \"one\" holds the character '1'" + rest);
  EXPECT_EQ(fasta_error(">one\nAC\xc3\xa9\n"), ":2: The sequence \"one\" holds the character with code 0xc3" + rest);
  EXPECT_EQ(fasta_error(std::string(">one\nA\0C\n", 9)),
            ":2: The sequence \"one\" holds the character with code 0x00" + rest);
}

TEST_F(FastaReader, LetterOutsideTheAlphabet) {
  EXPECT_EQ(read_fasta(file(">one\nacgtn\n"), "ACGTN")[0].sequence, "ACGTN");
  EXPECT_EQ(error_of([&] { read_fasta(file(">one\nACGT\nacgu\n"), "ACGTN"); }),
            ":3: The sequence \"one\" holds the character 'u', which is none of ACGTN.");
}

TEST_F(FastaReader, EmptyFile) {
  EXPECT_EQ(fasta_error(""), ":1: The file holds no FASTA record.");
  EXPECT_EQ(fasta_error("\n; comment only\n"), ":2: The file holds no FASTA record.");
}

TEST_F(FastaReader, NoFile) {
  EXPECT_EQ(error_of([&] { read_fasta(path_); }), ": cannot be opened: No such file or directory");
  std::filesystem::create_directory(path_);
  EXPECT_EQ(error_of([&] { read_fasta(path_); }), ": cannot be read: Is a directory");
}

TEST(Encode, PlacesOfLetters) { EXPECT_EQ(encode("GATNA", "ACGT"), (std::vector<signed char>{2, 0, 3, -1, 0})); }

TEST(ExamplesData, Globins) {
  const auto records = read_fasta(BELLMAN_EXAMPLES_DATA_DIR "/globins45.fa");
  ASSERT_EQ(records.size(), 45u);
  EXPECT_EQ(records[0].name, "MYG_ESCGI");
  EXPECT_EQ(records[0].sequence.size(), 153u);
  EXPECT_EQ(records[0].sequence.substr(148), "LGFQG");
}

// Substitution matrix

TEST_F(MatrixReader, ReadsRowsByLetter) {
  const auto matrix =
      read_substitution_matrix(file("# comment\n\n   A  c *\n# comment\nA  4 -0.5 -4\n\n* -4 -4 1 \r\nC\t-1\t9e0\t-4"));
  EXPECT_EQ(matrix.letters, "AC*");
  EXPECT_EQ(matrix.scores, (std::vector<double>{4, -0.5, -4, -1, 9, -4, -4, -4, 1}));
  EXPECT_EQ(matrix(0, 1), -0.5);
  EXPECT_EQ(matrix(1, 0), -1);
}

TEST_F(MatrixReader, RaggedRow) {
  EXPECT_EQ(matrix_error("A C\nA 1 2\nC 3\n"), ":3: The row 'C' holds 1 scores, expected 2, one for each column.");
  EXPECT_EQ(matrix_error("A C\nA 1 2 3\nC 3 4\n"), ":2: The row 'A' holds 3 scores, expected 2, one for each column.");
  EXPECT_EQ(matrix_error("A C\nA\nC 3 4\n"), ":2: The row 'A' holds 0 scores, expected 2, one for each column.");
}

TEST_F(MatrixReader, ScoreThatIsNoNumber) {
  for (const std::string score : {"x", "2x", "1,5", "nan", "inf", "-inf", "1e999"}) {
    EXPECT_EQ(matrix_error("# comment\nA C\nA 1 " + score + "\nC 3 4\n"),
              ":3: The score \"" + score + "\" is not a finite number.");
  }
}

TEST_F(MatrixReader, LetterThatIsNone) {
  EXPECT_EQ(matrix_error("A 7\nA 1 2\n"), ":1: \"7\" is not a letter from A to Z or *.");
  EXPECT_EQ(matrix_error("A CD\nA 1 2\n"), ":1: \"CD\" is not a letter from A to Z or *.");
  EXPECT_EQ(matrix_error("A C\nA 1 2\n4 3 4\n"), ":3: \"4\" is not a letter from A to Z or *.");
}

TEST_F(MatrixReader, LetterTwice) {
  EXPECT_EQ(matrix_error("A C a\nA 1 2 3\n"), ":1: The letter 'A' names two columns.");
  EXPECT_EQ(matrix_error("A C\nA 1 2\nA 1 2\n"), ":3: The letter 'A' names two rows.");
}

TEST_F(MatrixReader, NotSquare) {
  EXPECT_EQ(matrix_error("A C\nA 1 2\nC 3 4\nD 5 6\n"), ":4: The row 'D' has no column of that letter.");
  EXPECT_EQ(matrix_error("# comment\nA C D\nA 1 2 3\nD 5 6 7\n"), ":2: The column 'C' has no row.");
}

TEST_F(MatrixReader, EmptyFile) {
  EXPECT_EQ(matrix_error(""), ":1: The file holds no substitution matrix.");
  EXPECT_EQ(matrix_error("# comment\n# comment\n"), ":2: The file holds no substitution matrix.");
}

TEST_F(MatrixReader, NoFile) {
  EXPECT_EQ(error_of([&] { read_substitution_matrix(path_); }), ": cannot be opened: No such file or directory");
}

TEST(ExamplesData, Blosum62) {
  const auto matrix = read_substitution_matrix(BELLMAN_EXAMPLES_DATA_DIR "/BLOSUM62");
  ASSERT_EQ(matrix.letters, "ARNDCQEGHILKMFPSTWYVBJZX*");
  const auto score = [&](char row, char column) {
    return matrix(matrix.letters.find(row), matrix.letters.find(column));
  };
  EXPECT_EQ(score('W', 'W'), 11);
  EXPECT_EQ(score('A', 'R'), -1);
  EXPECT_EQ(score('*', '*'), 1);
  for (const char row : matrix.letters) {
    for (const char column : matrix.letters) EXPECT_EQ(score(row, column), score(column, row)) << row << column;
  }
}

// Model

constexpr const char* init = "init: [0.5, 0.5]\n";
constexpr const char* trans = "trans: [[0.9, 0.1], [0.2, 0.8]]\n";
constexpr const char* emit = "emit: [[0.4, 0.1, 0.1, 0.4], [0.25, 0.25, 0.25, 0.25]]\n";

TEST_F(HmmModelReader, ReadsAModel) {
  const auto model = read_hmm_model(
      file(std::string("# comment\r\nsymbols: acd\r\n") + init + trans +
           "emit:\n- [1, 0, 0]\n- [0.25, 0.25, 0.5]\n"
           "sequence: some.fa\nlength: 12\nother: [kept, {out: of}]\nexpected: {log_likelihood: -3.5, x: 1}\n"));
  EXPECT_EQ(model.states, 2u);
  EXPECT_EQ(model.symbols, "ACD");
  EXPECT_EQ(model.init, (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(model.trans, (std::vector<double>{0.9, 0.1, 0.2, 0.8}));
  EXPECT_EQ(model.emit, (std::vector<double>{1, 0, 0, 0.25, 0.25, 0.5}));
  EXPECT_EQ(model.sequence, "some.fa");
  EXPECT_EQ(model.length, 12u);
  EXPECT_EQ(model.log_likelihood, -3.5);
}

TEST_F(HmmModelReader, SymbolsDefaultToTheBases) {
  const auto model = read_hmm_model(file(std::string(init) + trans + emit));
  EXPECT_EQ(model.symbols, "ACGT");
  EXPECT_FALSE(model.sequence);
  EXPECT_FALSE(model.length);
  EXPECT_FALSE(model.log_likelihood);
}

TEST_F(HmmModelReader, NotYaml) {
  const auto error = model_error(std::string(init) + "trans: [[0.9, 0.1], [0.2, 0.8]\nemit: 1\n");
  // The column is yaml-cpp's to choose.
  EXPECT_TRUE(error.starts_with(":3:")) << error;
  EXPECT_NE(error.find(": The file is not valid YAML: "), std::string::npos) << error;
}

TEST_F(HmmModelReader, NotAMapping) {
  const std::string sentence = ": The file must hold a mapping with the keys init, trans and emit.";
  EXPECT_EQ(model_error(""), ":1:1" + sentence);
  EXPECT_EQ(model_error("# comment\n\n  - 1\n  - 2\n"), ":3:3" + sentence);
}

TEST_F(HmmModelReader, Keys) {
  EXPECT_EQ(model_error(std::string(trans) + emit), ":1:1: The key init is missing.");
  EXPECT_EQ(model_error(std::string(init) + emit), ":1:1: The key trans is missing.");
  EXPECT_EQ(model_error(std::string(init) + trans), ":1:1: The key emit is missing.");
  EXPECT_EQ(model_error(std::string(init) + trans + emit + init), ":4:1: The key init stands twice.");
}

TEST_F(HmmModelReader, Shapes) {
  const std::string sentence = "init must be a list of at least one probability.";
  EXPECT_EQ(model_error(std::string("init: []\n") + trans + emit), ":1:7: " + sentence);
  EXPECT_EQ(model_error(std::string("init: 1\n") + trans + emit), ":1:7: " + sentence);
  EXPECT_EQ(model_error(std::string(init) + "trans: [[0.9, 0.1]]\n" + emit),
            ":2:8: trans must be a list of 2 rows, one for each entry of init.");
  EXPECT_EQ(model_error(std::string(init) + "trans: [[0.9, 0.1], [1]]\n" + emit),
            ":2:21: trans row 1 must be a list of 2 probabilities.");
  EXPECT_EQ(model_error(std::string(init) + "trans: [[0.9, 0.1], 7]\n" + emit),
            ":2:21: trans row 1 must be a list of 2 probabilities.");
  EXPECT_EQ(model_error(std::string(init) + trans + "emit: [[0.5, 0.5], [0.5, 0.5]]\n"),
            ":3:8: emit row 0 must be a list of 4 probabilities.");
}

TEST_F(HmmModelReader, Probabilities) {
  for (const std::string entry : {"x", "nan", ".nan", ".inf", "0.5x", "[]", "~"}) {
    EXPECT_EQ(model_error("init: [0.5, " + entry + "]\n" + trans + emit),
              ":1:13: A probability of init must be a finite number.")
        << entry;
  }
  EXPECT_EQ(model_error(std::string("init: [1.5, -0.5]\n") + trans + emit),
            ":1:13: A probability of init must not be negative.");
  EXPECT_EQ(model_error(std::string(init) + "trans:\n  - [0.9, 0.1]\n  - [0.2, 0.79]\n" + emit),
            ":4:5: The probabilities of trans row 1 must sum to 1; they sum to 0.99.");
}

TEST_F(HmmModelReader, SumsMayBeOffByRounding) {
  EXPECT_EQ(model_error(std::string("init: [0.5, 0.5000000009]\n") + trans + emit), "no error");
  EXPECT_EQ(model_error(std::string("init: [0.5, 0.5000000011]\n") + trans + emit),
            ":1:7: The probabilities of init must sum to 1; they sum to 1.0000000011.");
}

TEST_F(HmmModelReader, OptionalKeys) {
  const std::string model = std::string(init) + trans + emit;
  for (const std::string symbols : {"ACGA", "AC-T", "[A, C, G, T]", "''"}) {
    EXPECT_EQ(model_error(model + "symbols: " + symbols + "\n"),
              ":4:10: symbols must be a word of different letters from A to Z, such as ACGT.");
  }
  EXPECT_EQ(model_error(model + "length: 1.5\n"), ":4:9: length must be a whole number, not below 0.");
  EXPECT_EQ(model_error(model + "length: -1\n"), ":4:9: length must be a whole number, not below 0.");
  EXPECT_EQ(model_error(model + "length: long\n"), ":4:9: length must be a finite number.");
  EXPECT_EQ(model_error(model + "sequence: [a]\n"), ":4:11: sequence must be the name of a file.");
  EXPECT_EQ(model_error(model + "expected: 1\n"), ":4:11: expected must be a mapping.");
  EXPECT_EQ(model_error(model + "expected:\n  log_likelihood: low\n"),
            ":5:19: log_likelihood must be a finite number.");
}

TEST_F(HmmModelReader, NoFile) {
  EXPECT_EQ(error_of([&] { read_hmm_model(path_); }), ": cannot be opened: No such file or directory");
  std::filesystem::create_directory(path_);
  EXPECT_EQ(error_of([&] { read_hmm_model(path_); }), ": cannot be read: Is a directory");
}

TEST(ExamplesData, LambdaPhageModel) {
  const auto model = read_hmm_model(BELLMAN_EXAMPLES_DATA_DIR "/lambda_phage_hmm.yaml");
  const auto genome = read_fasta(BELLMAN_EXAMPLES_DATA_DIR "/lambda_phage.fa", model.symbols);
  EXPECT_EQ(model.states, 2u);
  EXPECT_EQ(model.symbols, "ACGT");
  EXPECT_EQ(model.emit, (std::vector<double>{0.25, 0.25, 0.30, 0.20, 0.27, 0.21, 0.20, 0.32}));
  EXPECT_EQ(model.sequence, "lambda_phage.fa");
  ASSERT_EQ(genome.size(), 1u);
  EXPECT_EQ(model.length, genome[0].sequence.size());
  EXPECT_EQ(model.log_likelihood, -66684.766410711745);
}

}  // namespace
