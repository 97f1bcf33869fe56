// Any bytes: the tokenizer ends, its tokens lie in the source in order, and writing the tokens down
// again keeps the hash.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "problem/code_hash.h"
#include "problem/python_tokens.h"
#include "problem/text_file.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using kb::problem::TokenKind;
  // The bytes as text.
  const std::string source(data, data + size);
  const std::string hash = kb::problem::code_hash(source);
  require(hash.size() == 64);
  kb::problem::may_bind(source, "ModelNew");
  kb::problem::docstring_summary(source);

  kb::problem::PythonTokenizer tokenizer(source);
  const char* end = source.data();
  std::size_t count = 0;
  std::size_t depth = 0;
  bool regular = kb::problem::is_utf8(source) && source.find('\0') == std::string::npos &&
                 source.find("coding") == std::string::npos;
  bool line_start = true;
  std::string written;
  while (const auto token = tokenizer.next()) {
    require(++count <= 3 * size + 3);
    switch (token->kind) {
      case TokenKind::indent: ++depth; continue;
      case TokenKind::dedent: require(depth-- > 0); continue;
      case TokenKind::newline:
        written += "\n";
        line_start = true;
        continue;
      case TokenKind::other: regular = false; break;
      default: break;
    }
    require(token->text.data() >= end);
    end = token->text.data() + token->text.size();
    require(end <= source.data() + source.size());
    written += line_start ? std::string(depth, ' ') : " ";
    written += token->text;
    line_start = false;
  }
  if (regular) require(kb::problem::code_hash(written) == hash);
  return 0;
}
