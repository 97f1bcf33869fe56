#include "prompt/markdown.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

namespace kb::prompt {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

struct Fence {
  char sign = '`';
  std::size_t length = 0, indent = 0;
  std::string_view info;
};

/// The fence that `line` is, if it is one.
std::optional<Fence> fence_of(std::string_view line) {
  constexpr std::size_t kShortest = 3;
  Fence fence;
  while (fence.indent < line.size() && is_blank(line[fence.indent])) ++fence.indent;
  std::string_view rest = line.substr(fence.indent);
  if (rest.empty() || (rest[0] != '`' && rest[0] != '~')) return std::nullopt;
  fence.sign = rest[0];
  fence.length = std::min(rest.find_first_not_of(fence.sign), rest.size());
  if (fence.length < kShortest) return std::nullopt;
  fence.info = trimmed(rest.substr(fence.length));
  // ```like this``` is code within a line.
  if (fence.sign == '`' && fence.info.find('`') != std::string_view::npos) return std::nullopt;
  return fence;
}

std::string first_word(std::string_view info) {
  std::string word;
  for (const char c : info) {
    if (is_blank(c) || c == ',' || c == ':' || c == '=' || c == '}') break;
    if (c == '{' || c == '.') continue;  // {.python}
    word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return word;
}

bool is_any(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

Language language_of(std::string_view info) {
  const std::string word = first_word(info);
  if (is_any(word, {"python", "py", "python3", "triton", "ipython", "pycon"})) {
    return Language::python;
  }
  if (is_any(word, {"c", "cc", "cpp", "c++", "cxx", "cu", "cuda", "cuda_cpp", "cuda-cpp", "hip",
                    "h", "hpp", "cuh"})) {
    return Language::c_family;
  }
  if (is_any(word, {"bash",      "sh",     "shell",   "zsh",      "console", "text", "txt",
                    "plaintext", "output", "diff",    "patch",    "json",    "yaml", "yml",
                    "toml",      "cmake",  "make",    "makefile", "ptx",     "asm",  "log",
                    "latex",     "math",   "mermaid", "markdown", "md"})) {
    return Language::other;
  }
  return Language::unknown;
}

/// Whether the end of what it was fed lies inside a literal or comment that spans lines.
class OpenLiteral {
 public:
  explicit OpenLiteral(Language language)
      : python_(language == Language::python || language == Language::unknown),
        c_(language == Language::c_family) {}

  void feed(std::string_view line) {
    std::size_t at = 0;
    while (at < line.size()) {
      if (!close_.empty()) {
        const std::size_t end = line.find(close_, at);
        if (end == std::string_view::npos) return;
        at = end + close_.size();
        close_.clear();
      } else {
        at = python_ ? step_python(line, at) : c_ ? step_c(line, at) : line.size();
      }
    }
  }
  bool inside() const { return !close_.empty(); }

 private:
  std::size_t step_python(std::string_view line, std::size_t at) {
    const char c = line[at];
    if (c == '#') return line.size();
    if (c != '"' && c != '\'') return at + 1;
    const std::string_view rest = line.substr(at);
    for (const std::string_view quotes : {R"(""")", "'''"}) {
      if (rest.starts_with(quotes)) {
        close_ = quotes;
        return at + quotes.size();
      }
    }
    return behind_quoted(line, at);
  }

  std::size_t step_c(std::string_view line, std::size_t at) {
    const std::string_view rest = line.substr(at);
    if (rest.starts_with("//")) return line.size();
    if (rest.starts_with("/*")) {
      close_ = "*/";
      return at + 2;
    }
    if (rest.starts_with("R\"")) {
      constexpr std::size_t kLongestDelimiter = 16;
      const std::size_t open = rest.substr(0, kLongestDelimiter + 3).find('(');
      if (open != std::string_view::npos) {
        close_ = ")" + std::string(rest.substr(2, open - 2)) + "\"";
        return at + open + 1;
      }
    }
    if (rest[0] == '"') return behind_quoted(line, at);
    return at + 1;
  }

  static std::size_t behind_quoted(std::string_view line, std::size_t at) {
    const char quote = line[at++];
    while (at < line.size() && line[at] != quote) at += line[at] == '\\' ? 2 : 1;
    return at + 1;
  }

  bool python_, c_;
  std::string close_;  ///< what ends the literal that is open
};

struct Line {
  std::string_view text;  ///< without the line feed
  std::size_t begin = 0;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      lines_.push_back({text.substr(at, end - at), at});
      at = end + 1;
    }
  }

  Document parse() {
    Document document;
    document.before = std::string(text_);
    bool first = true;
    std::string_view lead;
    for (std::size_t i = 0; i < lines_.size();) {
      const auto fence = fence_of(lines_[i].text);
      if (!fence || is_any(first_word(fence->info), {"markdown", "md"})) {
        if (!fence && !trimmed(lines_[i].text).empty()) lead = trimmed(lines_[i].text);
        ++i;
        continue;
      }
      if (first) document.before = std::string(text_.substr(0, lines_[i].begin));
      first = false;
      std::size_t end = end_of(i, *fence);
      if (end == lines_.size() && literals_) {
        // An unbalanced quote must not swallow the rest of the answer: Markdown's rule alone, from
        // here on.
        literals_ = false;
        end = end_of(i, *fence);
      }
      document.blocks.push_back(block(i, end, *fence, lead));
      lead = {};
      i = end + 1;
    }
    return document;
  }

 private:
  /// The line that closes the block which `fence` on line `open` begins; the number of lines when
  /// none does.
  std::size_t end_of(std::size_t open, const Fence& fence) const {
    OpenLiteral literal(language_of(fence.info));
    for (std::size_t i = open + 1; i < lines_.size(); ++i) {
      const auto close = fence_of(lines_[i].text);
      if (close && close->sign == fence.sign && close->length >= fence.length &&
          close->info.empty()) {
        if (!literals_ || !literal.inside()) return i;
      }
      if (literals_) literal.feed(lines_[i].text);
    }
    return lines_.size();
  }

  Block block(std::size_t open, std::size_t end, const Fence& fence, std::string_view lead) const {
    Block block;
    block.info = std::string(fence.info);
    block.lead = std::string(lead);
    block.language = language_of(fence.info);
    block.closed = end < lines_.size();
    for (std::size_t i = open + 1; i < end; ++i) {
      std::string_view line = lines_[i].text;
      for (std::size_t k = 0; k < fence.indent && !line.empty() && is_blank(line[0]); ++k)
        line.remove_prefix(1);
      block.code.append(line).push_back('\n');
    }
    return block;
  }

  std::string_view text_;
  std::vector<Line> lines_;
  bool literals_ = true;
};

constexpr std::array<std::string_view, 6> kTags = {"think",     "thinking",   "thought",
                                                   "reasoning", "scratchpad", "analysis"};

struct Tag {
  std::string name;
  bool closing = false;
  std::size_t begin = 0, end = 0;
};

/// The reasoning tag at `at`, where `text` has a '<'.
std::optional<Tag> tag_at(std::string_view text, std::size_t at) {
  Tag tag;
  tag.begin = at++;
  if (at < text.size() && text[at] == '/') {
    tag.closing = true;
    ++at;
  }
  while (at < text.size() && std::isalpha(static_cast<unsigned char>(text[at])) != 0 &&
         tag.name.size() <= 10)
    tag.name += static_cast<char>(std::tolower(static_cast<unsigned char>(text[at++])));
  if (at >= text.size() || text[at] != '>') return std::nullopt;
  tag.end = at + 1;
  if (std::ranges::find(kTags, tag.name) == kTags.end()) return std::nullopt;
  return tag;
}

bool begins_line(std::string_view text, std::size_t at) {
  while (at > 0 && is_blank(text[at - 1])) --at;
  return at == 0 || text[at - 1] == '\n' || text[at - 1] == '>';
}

/// What comes behind the last "final" channel of an answer in the Harmony format.
std::string_view final_channel(std::string_view text) {
  constexpr std::string_view kFinal = "<|channel|>final<|message|>";
  const std::size_t at = text.rfind(kFinal);
  return at == std::string_view::npos ? text : text.substr(at + kFinal.size());
}

}  // namespace

Document parse_markdown(std::string_view text) {
  return Parser(text).parse();
}

Reasoning without_reasoning(std::string_view text) {
  Reasoning result;
  const std::string_view answer = final_channel(text);
  result.found = answer.size() != text.size();

  std::optional<Tag> open;
  std::size_t kept_to = 0;  // of `answer`: what lies before has been kept or dropped
  for (std::size_t at = answer.find('<'); at != std::string_view::npos;
       at = answer.find('<', at + 1)) {
    const auto tag = tag_at(answer, at);
    if (!tag) continue;
    if (!tag->closing) {
      if (open || !begins_line(answer, at)) continue;
      open = tag;
    } else if (open && open->name == tag->name) {
      result.answer.append(answer.substr(kept_to, open->begin - kept_to));
      result.found = true;
      kept_to = tag->end;
      open.reset();
    } else if (!open && !result.found) {
      result.found = true;
      kept_to = tag->end;
    }
  }
  result.answer.append(answer.substr(kept_to));
  result.unfinished = open.has_value();
  return result;
}

}  // namespace kb::prompt
