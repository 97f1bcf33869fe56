// An answer taken apart: what is reasoning, what is a fenced block, what is prose.
//
// Fences are read as CommonMark reads them, with three concessions to how models write: any
// indentation is allowed, a block called `markdown` is looked into, and a fence inside an
// unfinished triple-quoted string, comment or raw string of the block's own language is part of the
// code.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kb::prompt {

/// What a block's own label, or a look at it, says that it is written in.
enum class Language { python, c_family, unknown, other };

struct Block {
  std::string info;  ///< what stands behind the fence: "python", "cuda title=kernel.cu"
  std::string lead;  ///< the last line with text before the fence
  std::string code;  ///< without the fence's own indentation; ends in a line feed unless empty
  Language language = Language::unknown;  ///< by `info` alone
  bool closed = false;
};

struct Document {
  std::vector<Block> blocks;
  std::string before;  ///< everything before the first fence; the whole text when there is none
};

/// Linear in the length of `text`, whose lines end in a line feed.
Document parse_markdown(std::string_view text);

struct Reasoning {
  std::string answer;  ///< what is left without it
  bool found = false;
  bool unfinished = false;  ///< an opening tag that nothing closes: its text stays in `answer`
};

/// Takes <think>…</think> and its like out. A closing tag without an opening one ends reasoning
/// that began with the text (chat templates write the opening tag themselves).
Reasoning without_reasoning(std::string_view text);

}  // namespace kb::prompt
