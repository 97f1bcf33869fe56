#include "examine/description.h"

#include <fmt/format.h>

#include "problem/text_file.h"

namespace kb::examine {
namespace {

using worker::FaultKind;

constexpr std::size_t kMaxSizeName = 200;
constexpr double kMaxOperations = 1e30;

std::expected<double, std::string> operations_of(const nlohmann::json& reply, const char* name) {
  const auto found = reply.find(name);
  if (found == reply.end() || !found->is_number() || !(found->get<double>() >= 0) ||
      found->get<double>() > kMaxOperations)
    return std::unexpected(fmt::format("{} is not a count", name));
  return found->get<double>();
}

}  // namespace

std::expected<Description, std::string> parse_description(const nlohmann::json& reply) {
  auto spec = worker::parse_spec(reply.value("spec", nlohmann::json()));
  if (!spec) return std::unexpected(spec.error());
  const auto matrix = operations_of(reply, "matrix_operations");
  const auto other = operations_of(reply, "other_operations");
  if (!matrix) return std::unexpected(matrix.error());
  if (!other) return std::unexpected(other.error());
  const auto size = reply.find("size");
  if (size == reply.end() || !size->is_string())
    return std::unexpected(std::string("its size is not a text"));
  return Description{
      std::move(*spec),
      problem::printable(size->get_ref<const std::string&>().substr(0, kMaxSizeName)), *matrix,
      *other};
}

std::expected<Description, std::string> describe(const Environment& environment,
                                                 const problem::Problem& problem,
                                                 const Terms& terms) {
  Station station(environment, terms);
  const auto reply = station.ask("describe", problem);
  if (reply) return parse_description(*reply);
  if (reply.error().kind == FaultKind::timeout)
    return std::unexpected(
        fmt::format("{} could not be described within {} s", problem.label,
                    std::chrono::duration_cast<std::chrono::seconds>(terms.time_limit).count()));
  return std::unexpected(last_line(reply.error().text));
}

}  // namespace kb::examine
