// One HTML file with everything in it: it opens from a disk, without a network.
//
// Nothing of a run becomes markup. Its words stand in blocks of JSON, in which <, >, & and what
// ends a line in JavaScript are escaped, so that no block can end early; our script puts them into
// the page as text. Should that ever fail, the page's Content-Security-Policy runs only the scripts
// and styles whose digests it names, loads nothing, and refuses every string as markup (Trusted
// Types).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "report/document.h"

namespace kb::report {

std::string make_page(const Document& document);

/// As JSON that can stand in a <script> element. What is not UTF-8 is replaced.
std::string script_json(const nlohmann::json& json);

}  // namespace kb::report
