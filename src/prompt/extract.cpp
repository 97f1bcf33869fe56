#include "prompt/extract.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "build/log.h"
#include "problem/python_tokens.h"
#include "problem/text_file.h"
#include "prompt/entry_point.h"
#include "prompt/markdown.h"

namespace kb::prompt {
namespace {

using problem::TokenKind;
using Warnings = std::vector<std::string>;

bool is_python(problem::Backend language) {
  return language == problem::Backend::python;
}

std::string_view entry_point(problem::Backend language) {
  return is_python(language) ? "ModelNew" : "kb_run";
}

/// UTF-8 with line feeds, without NUL bytes and other control characters.
std::string readable(std::string_view answer, Warnings& warnings) {
  if (!problem::is_utf8(answer))
    warnings.emplace_back("the answer is not UTF-8 everywhere; those bytes were replaced");
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (answer.starts_with(kMark)) answer.remove_prefix(kMark.size());
  return build::clean_log(answer, {}, std::string_view::npos);
}

bool has_text(std::string_view text) {
  return text.find_first_not_of(" \t\r\n\f\v") != std::string_view::npos;
}

// ---- text without a fence -----------------------------------------------------------------------

bool begins_python(std::string_view line) {
  for (const std::string_view start : {"import ", "from ", "class ", "def ", "@", "#!", "\"\"\""})
    if (line.starts_with(start)) return true;
  return false;
}

bool begins_c(std::string_view line) {
  for (const std::string_view start :
       {"#include", "#define", "#pragma", "#if", "//", "/*", "extern ", "namespace ", "using ",
        "KB_EXPORT", "template", "static ", "__global__"})
    if (line.starts_with(start)) return true;
  return false;
}

/// A line that is a sentence, a list item or a heading rather than a statement at the outermost
/// level.
bool is_prose(std::string_view line) {
  if (!has_text(line)) return true;
  if (line[0] == ' ' || line[0] == '\t') return false;
  if (line.starts_with("- ") || line.starts_with("* ") || line.starts_with("**")) return true;
  if (std::isalpha(static_cast<unsigned char>(line[0])) == 0) return false;
  const auto words = 1 + std::ranges::count(line, ' ');
  return words >= 3 && line.find_first_of("={};(#@") == std::string_view::npos &&
         !begins_python(line) && !begins_c(line);
}

/// `text` from its first line of code to its last; all of it when no line looks like the first.
std::string without_prose(std::string_view text, problem::Backend language) {
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  const auto first = std::ranges::find_if(
      lines, [&](auto line) { return is_python(language) ? begins_python(line) : begins_c(line); });
  auto from = first == lines.end() ? lines.begin() : first;
  auto to = lines.end();
  while (to != from && is_prose(*(to - 1))) --to;
  std::string code;
  for (; from != to; ++from) code.append(*from).push_back('\n');
  return code;
}

// ---- blocks that belong together
// -----------------------------------------------------------------

bool is_native_file(std::string_view name) {
  for (const std::string_view suffix : {".cu", ".cuh", ".cpp", ".cc", ".h", ".hpp", ".hip"})
    if (name.size() > suffix.size() && name.ends_with(suffix)) return true;
  return false;
}

bool may_be_c(const Block& block) {
  return block.language == Language::c_family ||
         (block.language == Language::unknown && block.code.find("#include") != std::string::npos);
}

/// Whether the block is called `file`: behind its fence, in the line before it or in its first
/// line.
bool is_called(const Block& block, std::string_view file) {
  const std::string_view first = std::string_view(block.code).substr(0, block.code.find('\n'));
  for (const std::string_view text :
       {std::string_view(block.info), std::string_view(block.lead), first})
    if (text.find(file) != std::string_view::npos) return true;
  return false;
}

std::string file_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));  // npos + 1 is 0
}

/// The literals of `code` that name a native source file, in order: text with quotes, as it stands.
std::vector<std::string_view> file_literals(std::string_view code) {
  std::vector<std::string_view> found;
  problem::PythonTokenizer tokens(code);
  while (const auto token = tokens.next()) {
    const std::string_view text = token->text;
    if (token->kind != TokenKind::string || text.size() < 3) continue;
    if (text.find_first_of("\n{\\") != std::string_view::npos) continue;
    if ((text[0] == '"' || text[0] == '\'') && is_native_file(text.substr(1, text.size() - 2)))
      found.push_back(text);
  }
  return found;
}

std::string python_literal(std::string_view text) {
  // JSON's escapes are Python's too, as long as nothing beyond ASCII is escaped.
  return nlohmann::json(std::string(text)).dump();
}

/// A Python expression that stands for `text`, one line of it a line.
std::string python_lines(std::string_view text) {
  std::string result = "(\n";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at) + 1, text.size());
    const std::size_t stop = end == 0 ? text.size() : end;
    result += "    " + python_literal(text.substr(at, stop - at)) + "\n";
    at = stop;
  }
  return result + ")";
}

/// Puts `prelude` behind the `from __future__` lines of `code`, which have to stay first.
std::string with_prelude(const std::string& code, const std::string& prelude) {
  constexpr std::string_view kFuture = "from __future__";
  std::size_t at = 0;
  for (std::size_t found = code.find(kFuture); found != std::string::npos;
       found = code.find(kFuture, found + kFuture.size()))
    if (found == 0 || code[found - 1] == '\n')
      at = std::min(code.find('\n', found), code.size() - 1) + 1;
  return code.substr(0, at) + prelude + code.substr(at);
}

/// Writes the native blocks that `code` names into it. The number of blocks that were used.
std::size_t take_in_native_files(std::string& code, const std::vector<Block>& blocks) {
  std::vector<const Block*> native;
  for (const auto& block : blocks)
    if (block.closed && may_be_c(block) && has_text(block.code)) native.push_back(&block);
  const auto literals = file_literals(code);
  if (native.empty() || literals.empty()) return 0;

  std::set<std::string> names;
  for (const auto literal : literals)
    names.insert(file_name(literal.substr(1, literal.size() - 2)));
  std::map<std::string, const Block*> block_of;
  // A dozen files are plenty; more names would make this quadratic.
  constexpr std::size_t kMostFiles = 12;
  if (names.size() > kMostFiles) return 0;
  for (const auto& name : names)
    for (const auto* block : native)
      if (is_called(*block, name)) block_of[name] = block;  // the last of that name
  if (block_of.empty() && names.size() == 1 && native.size() == 1)
    block_of[*names.begin()] = native.front();
  if (block_of.empty()) return 0;

  std::string prelude =
      "# The files below are other blocks of the same answer, which this code names.\n"
      "import pathlib as _answer_pathlib\n"
      "import tempfile as _answer_tempfile\n"
      "_answer_folder = _answer_pathlib.Path(_answer_tempfile.mkdtemp())\n";
  for (const auto& [name, block] : block_of)
    prelude += fmt::format("(_answer_folder / {}).write_text({})\n", python_literal(name),
                           python_lines(block->code));
  std::string joined;
  std::size_t at = 0;
  for (const auto literal : literals) {
    const std::string name = file_name(literal.substr(1, literal.size() - 2));
    if (!block_of.contains(name)) continue;
    const auto begin = static_cast<std::size_t>(literal.data() - code.data());
    joined +=
        code.substr(at, begin - at) + fmt::format("str(_answer_folder / {})", python_literal(name));
    at = begin + literal.size();
  }
  code = with_prelude(joined + code.substr(at), prelude);
  return block_of.size();
}

/// Puts earlier Python blocks that bind what `code` misses before it. The number that were used.
std::size_t take_in_definitions(std::string& code, const std::vector<Block>& blocks,
                                std::size_t chosen) {
  std::set<std::string> missing = free_names(code);
  std::vector<std::size_t> used;
  for (std::size_t i = chosen; i-- > 0 && !missing.empty();) {
    const Block& block = blocks[i];
    const bool python = block.language == Language::python ||
                        (block.language == Language::unknown && !may_be_c(block));
    if (!python || !block.closed) continue;
    // An earlier draft of the whole is no part of it.
    if (defines_entry_point(block.code, problem::Backend::python)) continue;
    const auto names = top_level_names(block.code);
    const bool needed =
        std::ranges::any_of(names, [&](const auto& name) { return missing.contains(name); });
    if (!needed) continue;
    used.push_back(i);
    missing.merge(free_names(block.code));
    for (const auto& name : names) missing.erase(name);
  }
  for (const auto i : used) code = blocks[i].code + "\n\n" + code;
  return used.size();
}

/// Replaces `#include "name"` by the block of that name. The number that were used.
std::size_t take_in_headers(std::string& code, const std::vector<Block>& blocks,
                            std::size_t chosen) {
  constexpr std::string_view kInclude = "#include \"";
  constexpr std::size_t kMostFiles = 12;
  std::string joined;
  std::size_t at = 0, used = 0, tried = 0;
  for (std::size_t found = code.find(kInclude); found != std::string::npos && tried < kMostFiles;
       found = code.find(kInclude, found + 1)) {
    ++tried;
    const std::size_t name_at = found + kInclude.size();
    const std::size_t end = code.find_first_of("\"\n", name_at);
    if (end == std::string::npos || code[end] != '"') continue;
    const std::string name = file_name(std::string_view(code).substr(name_at, end - name_at));
    for (std::size_t i = blocks.size(); i-- > 0;) {
      if (i == chosen || !blocks[i].closed || !may_be_c(blocks[i])) continue;
      if (name.empty() || !is_called(blocks[i], name)) continue;
      joined += code.substr(at, found - at) + blocks[i].code;
      at = end + 1;
      ++used;
      break;
    }
  }
  code = joined + code.substr(at);
  return used;
}

// ---- the choice
// ----------------------------------------------------------------------------------

std::optional<Extraction> from_blocks(const Document& document, problem::Backend language) {
  const auto& blocks = document.blocks;
  std::optional<std::size_t> complete, cut_off;
  std::size_t drafts = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    // A diff's lines would pass for code.
    if (blocks[i].language == Language::other) continue;
    if (!defines_entry_point(blocks[i].code, language)) continue;
    if (blocks[i].closed) {
      if (complete) ++drafts;
      complete = i;
    } else {
      cut_off = i;
    }
  }
  if (!complete && !cut_off) return std::nullopt;
  Extraction result;
  const std::size_t chosen = complete ? *complete : *cut_off;
  result.code = blocks[chosen].code;
  result.how = complete ? How::fenced : How::truncated;
  if (!complete)
    result.warnings.emplace_back("the block's fence is never closed; the answer may be cut off");
  if (complete && cut_off)
    result.warnings.emplace_back("a later block is cut off; the last complete one was taken");
  if (drafts > 0)
    result.warnings.push_back(
        fmt::format("{} earlier block{} the entry point too; the last was "
                    "taken",
                    drafts, drafts == 1 ? " defines" : "s define"));
  const std::size_t parts = is_python(language) ? take_in_definitions(result.code, blocks, chosen) +
                                                      take_in_native_files(result.code, blocks)
                                                : take_in_headers(result.code, blocks, chosen);
  if (parts > 0) {
    if (complete) result.how = How::joined;
    result.warnings.push_back(
        fmt::format("{} other block{} taken in", parts, parts == 1 ? " was" : "s were"));
  }
  return result;
}

std::optional<Extraction> from_bare_text(const Document& document, problem::Backend language) {
  if (!defines_entry_point(document.before, language)) return std::nullopt;
  Extraction result;
  result.code = without_prose(document.before, language);
  result.how = How::bare;
  result.warnings.emplace_back(
      "the code is in no fenced block; the prose around it was cut off as "
      "far as it could be told");
  // Prose that looked like the beginning may hide the definition.
  if (!defines_entry_point(result.code, language)) result.code = document.before;
  return result;
}

std::optional<Extraction> guess(const Document& document, problem::Backend language) {
  const auto& blocks = document.blocks;
  for (std::size_t i = blocks.size(); i-- > 0;) {
    if (blocks[i].language == Language::other || !has_text(blocks[i].code)) continue;
    Extraction result;
    result.code = blocks[i].code;
    result.how = blocks[i].closed ? How::guessed : How::truncated;
    result.warnings.push_back(
        fmt::format("no block defines {}; the last one was taken", entry_point(language)));
    if (!blocks[i].closed)
      result.warnings.emplace_back("the block's fence is never closed; the answer may be cut off");
    return result;
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(How how) {
  switch (how) {
    case How::fenced: return "fenced";
    case How::joined: return "joined";
    case How::truncated: return "truncated";
    case How::bare: return "bare";
    case How::guessed: return "guessed";
  }
  return "guessed";
}

std::expected<Extraction, std::string> extract_code(std::string_view answer,
                                                    problem::Backend language) {
  if (!has_text(answer)) return std::unexpected("the answer is empty");
  Warnings warnings;
  const std::string text = readable(answer, warnings);
  const Reasoning reasoning = without_reasoning(text);
  const Document document = parse_markdown(reasoning.answer);

  auto result = from_blocks(document, language);
  if (!result) result = from_bare_text(document, language);
  if (!result && reasoning.found) {
    const Document whole = parse_markdown(text);
    result = from_blocks(whole, language);
    if (!result) result = from_bare_text(whole, language);
    if (result) result->warnings.emplace_back("there is code in the answer's reasoning alone");
  }
  if (!result) result = guess(document, language);
  if (!result) {
    if (reasoning.unfinished)
      return std::unexpected("the answer has no code: its reasoning was cut off before any");
    if (reasoning.found && !has_text(reasoning.answer))
      return std::unexpected("the answer is empty behind its reasoning");
    return std::unexpected(
        fmt::format("the answer has no code block and defines no {}", entry_point(language)));
  }
  if (reasoning.unfinished)
    warnings.emplace_back("the answer's reasoning is never closed; it was read as a part of it");
  result->warnings.insert(result->warnings.begin(), warnings.begin(), warnings.end());
  if (!result->code.ends_with('\n')) result->code += '\n';
  return *result;
}

}  // namespace kb::prompt
