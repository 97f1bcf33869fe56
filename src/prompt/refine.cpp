// Library::refine: the message that gives a judgement back.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "build/log.h"
#include "prompt/feedback.h"
#include "prompt/fence.h"
#include "prompt/prompt.h"
#include "prompt/texts.h"

namespace kb::prompt {

std::expected<std::string, std::string> Library::refine(const Request& request,
                                                        const nlohmann::json& result,
                                                        std::string_view previous_code) const {
  const auto general_names = general(request);
  if (!general_names) return std::unexpected(general_names.error());
  const auto found = result.is_object() ? result.find("verdict") : result.end();
  if (!result.is_object() || found == result.end() || !found->is_string())
    return std::unexpected(
        "this is no result: it is not the JSON object that `eval --json` prints");
  const auto verdict = texts_->verdict.find(found->get_ref<const std::string&>());
  if (verdict == texts_->verdict.end())
    return std::unexpected("the result has a verdict that this program does not know");

  Names names = *general_names;
  std::string told = expand(verdict->second, names);
  if (const auto flags = result.find("flags"); flags != result.end() && flags->is_array())
    for (const auto& flag : *flags)
      if (flag.is_string())
        if (const auto text = texts_->flag.find(flag.get_ref<const std::string&>());
            text != texts_->flag.end())
          told += "\n" + expand(text->second, names);
  const auto advice = texts_->verdict.find(verdict->first + "_advice");
  const auto& of_backend = texts_->of_backend.at(request.backend);
  std::string source;
  if (!previous_code.empty()) {
    Names with_code = *general_names;
    with_code["code"] =
        fenced(of_backend.label, build::clean_log(previous_code, {}, std::string::npos));
    source = expand(texts_->text.at("source"), with_code);
  }
  names.insert(
      {{"verdict", told},
       {"details", details_of(result)},
       {"speed", speed_of(result)},
       {"profile", profile_of(result)},
       {"source", std::move(source)},
       {"advice", advice == texts_->verdict.end() ? "" : expand(advice->second, *general_names)}});
  return expand(texts_->text.at("refine"), names) + "\n";
}

}  // namespace kb::prompt
