#include "problem/code_hash.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "problem/python_tokens.h"

namespace kb::problem {
namespace {

const std::string kProgram = R"py("""Doc of the module."""
import torch
import torch.nn as nn


class Model(nn.Module):
    """Doc."""

    def __init__(self, n: int = 3, *, eps=1e-5):
        super().__init__()
        self.n = n  # a comment
        self.names = [
            'a', "b",   # in brackets
            r'\d', b"\x00", f"{n!r:>{eps}} {'x'}",
        ]
        if n > 1 and \
                eps < 0x1F:
            self.n **= 2
        else:
            self.n //= 2

    def forward(self, x):
        text = '''one
        # not a comment
    two'''
        return x @ x.T if x is not None else {1: ..., 2: 3j}


def get_inputs():
	return [torch.rand(4, 4)]
)py";

TEST(CodeHash, IsSha256Hex) {
  EXPECT_THAT(code_hash(kProgram), testing::MatchesRegex("[0-9a-f]{64}"));
  EXPECT_NE(code_hash(""), code_hash("x"));
}

struct Pair {
  const char* what;
  std::string left, right;
};

TEST(CodeHash, SameProgram) {
  const std::vector<Pair> pairs = {
      {"spaces", "x = 1\n", "x=1\n"},
      {"tabs and form feeds", "x\t=\f1\n", "x = 1\n"},
      {"comment", "x = 1  # one\n", "x = 1\n"},
      {"comment line", "# hello\nx = 1\n", "x = 1\n"},
      {"comment at any depth", "if x:\n  # a\n y\n", "if x:\n y\n"},
      {"blank lines", "\n\nx = 1\n   \n\n", "x = 1\n"},
      {"no line end at the end", "x = 1", "x = 1\n"},
      {"a block that ends with the file", "if x:\n    y", "if x:\n    y\n"},
      {"CR LF", "if x:\r\n  y\r\n", "if x:\n  y\n"},
      {"CR", "if x:\r  y\r", "if x:\n  y\n"},
      {"CR LF in a string", "x = '''a\r\nb'''\r\n", "x = '''a\nb'''\n"},
      {"byte order mark", "\xef\xbb\xbfx = 1\n", "x = 1\n"},
      {"depth of indentation", "if x:\n  y\n  z\n", "if x:\n        y\n        z\n"},
      {"tabs for indentation", "if x:\n\ty\n\tz\n", "if x:\n    y\n    z\n"},
      {"continued line", "x = 1 + \\\n    2\n", "x = 1 + 2\n"},
      {"line break in brackets", "f(a,\n  b)\n", "f(a, b)\n"},
      {"comment in brackets", "f(a,  # )\n  b)\n", "f(a, b)\n"},
      {"encoding that Python has anyway", "# -*- coding: utf-8 -*-\nx\n", "x\n"},
      {"space after a string", "x = 'a'if y else z", "x = 'a' if y else z"},
      {"space in a slice", "a[1 :2]", "a[1:2]"},
      {"minus after a hexadecimal e", "0xe - 5", "0xe-5"},
  };
  for (const Pair& pair : pairs)
    EXPECT_EQ(code_hash(pair.left), code_hash(pair.right)) << pair.what;
}

TEST(CodeHash, DifferentProgram) {
  const std::vector<Pair> pairs = {
      {"names fuse", "a b\n", "ab\n"},
      {"keyword and name", "not x", "notx"},
      {"operators fuse", "a < = b", "a <= b"},
      {"<> of barry_as_FLUFL", "a <> b", "a < > b"},
      {"walrus", "(a := b)", "(a : = b)"},
      {"ellipsis", "x = ...", "x = . . ."},
      {"numbers fuse", "1 2", "12"},
      {"exponent", "1e-5", "1e - 5"},
      {"attribute of a number", "1 .real", "1.real"},
      {"name behind a number", "case 1 as y: pass", "case 1as y: pass"},
      {"string prefix", "r 'a'", "r'a'"},
      {"string quotes", "x = 'a'", "x = \"a\""},
      {"space in a string", "x = 'a b'", "x = 'a  b'"},
      {"hash sign in a string", "x = 'a # b'", "x = 'a # c'"},
      {"docstring", "def f():\n  'a'\n", "def f():\n  'b'\n"},
      {"space in a triple string", "'''a\n  b'''", "'''a\n   b'''"},
      {"split string", "'ab'", "'a' 'b'"},
      {"number spelling", "x = 10", "x = 0xa"},
      {"in or out of a block", "if x:\n  y\nz\n", "if x:\n  y\n  z\n"},
      {"depth of a nested block", "if a:\n if b:\n  c\n d\n", "if a:\n if b:\n  c\nd\n"},
      {"line end", "a\nb\n", "a b\n"},
      {"semicolon", "a; b\n", "a\nb\n"},
      {"line break in a bracket or not", "(a\n)\nb", "(a)\n(b)"},
      {"indent or not", "a\nb\n", "a\n b\n"},
      {"depth that depends on tab width", "if x:\n\ty\n        z\n", "if x:\n\ty\n\tz\n"},
      {"a depth that no line above has", "if x:\n    y\n  z\n", "if x:\n    y\nz\n"},
      {"split indentation", "if x:\n \\\n  y\n  z\n", "if x:\n  y\n  z\n"},
      {"split indentation, then another depth", "if a:\n \\\nb\n c\n", "if a:\n \\\nb\n  c\n"},
      {"unfinished string", "x = 'a\n", "x = 'a'\n"},
      {"backslash at the end", "x = 1 \\\n", "x = 1\n"},
      {"quote in a field (3.12)", "f\"{x[\" # \"]}\"", "f\"{x[\" # !\"]}\""},
      {"quote in a format", "f\"{x:'>4}\" # '", "f\"{x:'>5}\" # '"},
      {"comment in a field (3.12)", "f'''{x # }'\n}'''\n# a", "f'''{x # }\n}'''\n# a"},
      {"doubled brace", "f'{{' # }}'\n'a'", "f'{{' # }}'\n'b'"},
      {"named character", "f'\\N{BULLET}' 'a'", "f'\\N{BULLET}' 'b'"},
      {"space in a field", "f'{x=}'", "f'{x =}'"},
      {"other encoding", "# coding: latin-1\nx = '\xc3\xa4'\n",
       "# coding: cp1252\nx = '\xc3\xa4'\n"},
      {"NUL in a comment", std::string("x # \0\n", 6), "x # \n"},
      {"not UTF-8 in a comment", "x # \xff\n", "x # \n"},
  };
  for (const Pair& pair : pairs)
    EXPECT_NE(code_hash(pair.left), code_hash(pair.right)) << pair.what;
}

std::vector<Token> tokens_of(std::string_view source) {
  std::vector<Token> tokens;
  PythonTokenizer tokenizer(source);
  while (const auto token = tokenizer.next()) tokens.push_back(*token);
  return tokens;
}

// Writes tokens down again with as much random white space and as many comments as the language
// allows.
std::string render(const std::vector<Token>& tokens, std::mt19937& random) {
  const auto chance = [&](unsigned one_in) { return random() % one_in == 0; };
  std::string text;
  std::vector<std::string> indentation{""};
  std::size_t brackets = 0;
  bool line_start = true;
  for (const Token& token : tokens) {
    switch (token.kind) {
      case TokenKind::indent:
        indentation.push_back(indentation.back() +
                              (chance(2) ? "\t" : std::string(1 + random() % 7, ' ')));
        continue;
      case TokenKind::dedent: indentation.pop_back(); continue;
      case TokenKind::newline:
        if (chance(3)) text += "  # it's \"a\" comment ( [ { \\";
        text += chance(4) ? "\r\n" : "\n";
        while (chance(3)) text += chance(2) ? "   \n" : "\t # if x:\n";
        line_start = true;
        continue;
      default: break;
    }
    if (line_start) {
      text += indentation.back();
    } else {
      text += chance(2) ? " " : " \t ";
      if (chance(5)) text += "\\\n  ";
      if (brackets > 0 && chance(3)) text += chance(2) ? "\n" : "# )\n\n ";
    }
    line_start = false;
    text += token.text;
    if (token.text == "(" || token.text == "[" || token.text == "{") ++brackets;
    if (token.text == ")" || token.text == "]" || token.text == "}") --brackets;
  }
  return text;
}

TEST(CodeHashProperty, SpaceAndCommentsKeepTheHash) {
  std::mt19937 random(1);
  const auto tokens = tokens_of(kProgram);
  const std::string hash = code_hash(kProgram);
  for (int i = 0; i < 500; ++i) {
    const std::string text = render(tokens, random);
    ASSERT_EQ(code_hash(text), hash) << text;
  }
}

TEST(CodeHashProperty, EveryTokenCounts) {
  std::mt19937 random(2);
  const auto tokens = tokens_of(kProgram);
  std::set<std::string> hashes{code_hash(kProgram)};
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind == TokenKind::indent || tokens[i].kind == TokenKind::dedent ||
        tokens[i].kind == TokenKind::newline)
      continue;
    // A letter more in any name, number or string; another operator.
    std::string changed(tokens[i].text);
    if (tokens[i].kind == TokenKind::op) {
      if (changed.find_first_of("()[]{}") != std::string::npos) continue;
      changed = changed == "+" ? "-" : "+";
    } else {
      changed.insert(changed.size() - 1, "1");
    }
    auto copy = tokens;
    copy[i].text = changed;
    EXPECT_TRUE(hashes.insert(code_hash(render(copy, random))).second) << i << ": " << changed;
  }
}

TEST(CodeHashProperty, EveryByteOfAStringCounts) {
  const std::string hash = code_hash(kProgram);
  for (const Token& token : tokens_of(kProgram)) {
    if (token.kind != TokenKind::string) continue;
    const auto begin = static_cast<std::size_t>(token.text.data() - kProgram.data());
    for (std::size_t i = begin; i < begin + token.text.size(); ++i) {
      if (kProgram[i] == '_') continue;
      std::string changed = kProgram;
      changed[i] = '_';
      EXPECT_NE(code_hash(changed), hash) << changed.substr(begin, token.text.size());
    }
  }
}

TEST(CodeHashProperty, EveryLinesDepthCounts) {
  const std::string hash = code_hash(kProgram);
  const std::string block = "\n        self.n = n  # a comment\n";
  const std::size_t at = kProgram.find(block);
  ASSERT_NE(at, std::string::npos);
  for (const int spaces : {0, 4, 12}) {
    std::string changed = kProgram;
    changed.replace(at + 1, 8, std::string(static_cast<std::size_t>(spaces), ' '));
    EXPECT_NE(code_hash(changed), hash) << spaces;
  }
}

TEST(CodeHash, SurvivesEveryTruncation) {
  std::set<std::string> hashes;
  for (std::size_t size = 0; size <= kProgram.size(); ++size)
    hashes.insert(code_hash(kProgram.substr(0, size)));
  EXPECT_GT(hashes.size(), kProgram.size() / 3);
}

TEST(CodeHash, DeepNestingNeitherRecursesNorBlowsUp) {
  std::string fields;
  for (int i = 0; i < 100'000; ++i) fields += "f'{";
  EXPECT_EQ(code_hash(fields).size(), 64u);
  EXPECT_EQ(code_hash("f'" + std::string(100'000, '{')).size(), 64u);
  EXPECT_EQ(code_hash("f'{x:" + std::string(100'001, '{')).size(), 64u);
  EXPECT_EQ(code_hash(std::string(1'000'000, '(')).size(), 64u);
  std::string steps;
  for (std::size_t i = 0; i < 1000; ++i) steps += std::string(i, ' ') + "if x:\n";
  EXPECT_EQ(code_hash(steps).size(), 64u);
}

}  // namespace
}  // namespace kb::problem
