// The files that every page is made of, inside the program (cmake/KernelbenchReport.cmake).
#pragma once

#include <string_view>

namespace kb::report::assets {

std::string_view page();      ///< HTML, with {{name}} where something goes
std::string_view style();     ///< CSS
std::string_view code();      ///< our script
std::string_view chart();     ///< Chart.js
std::string_view prism();     ///< Prism, with the languages cpp and python
std::string_view licenses();  ///< of the two, plain text

}  // namespace kb::report::assets
