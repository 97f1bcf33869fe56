#include "profile/words.h"

#include <gmock/gmock.h>

#include "build/files.h"
#include "profile/raw_page.h"

namespace kb::profile {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Side counted(const std::string& name, std::size_t launch) {
  const auto page =
      build::read_file(KERNELBENCH_SOURCE_DIR "/tests/data/profile/h200.raw.csv", 1 << 20);
  return {.name = name,
          .counters = counters_of({parse_raw_page(page.value_or("")).value().at(launch)})};
}

TEST(Words, PutSidesBesideEachOther) {
  const Profile profile{.profiler = "Nsight Compute 2025.3.1.0",
                        .sides = {counted("candidate", 3), counted("reference", 2)}};
  const auto text = in_words(profile);
  EXPECT_THAT(text, HasSubstr("\nduration                            171.6 us        2.680 ms\n"));
  EXPECT_THAT(text, HasSubstr("\nregisters a thread *                     168             254\n"));
  EXPECT_THAT(text, HasSubstr("\nshared memory wavefronts                   -               -\n"));
  EXPECT_THAT(text, HasSubstr("candidate      Bound by the tensor cores"));
  EXPECT_THAT(text, HasSubstr("PyTorch        Bound by the multiprocessors"));
  EXPECT_THAT(text, Not(HasSubstr("no counters")));
}

// The numbers and sentences at the top are what a prompt shows.
TEST(Words, JsonHasWhatAPromptShowsAtItsTop) {
  const auto json = to_json({.profiler = "Nsight Compute 2025.3.1.0",
                             .sides = {counted("candidate", 0), counted("reference", 0)}});
  EXPECT_DOUBLE_EQ(json["candidate_dram_percent"].get<double>(), 87.51);
  EXPECT_THAT(json["candidate"].get<std::string>(), StartsWith("Bound by memory"));
  EXPECT_FALSE(json.contains("candidate_shared_wavefronts"));
  EXPECT_FALSE(json.contains("obstacle"));
  EXPECT_EQ(json["sides"]["reference"]["kernels"].size(), 1u);
  EXPECT_DOUBLE_EQ(json["sides"]["reference"]["kernels"][0]["duration_us"].get<double>(), 504.288);
}

TEST(Words, WithoutCountersOperatorsAndTheReason) {
  const auto operators =
      parse_operators({{"ok", true},
                       {"time_us", 100.0},
                       {"operators",
                        {{{"name", "aten::add"}, {"calls", 2}, {"time_us", 10}},
                         {{"name", "aten::mm\x1b[2J"}, {"calls", 1}, {"time_us", 90}}}}});
  ASSERT_TRUE(operators) << operators.error();
  const Profile profile{.profiler = "PyTorch's profiler",
                        .obstacle = "no permission",
                        .sides = {{.name = "candidate", .error = "it crashed"},
                                  {.name = "reference", .operators = *operators}}};
  EXPECT_THAT(in_words(profile),
              AllOf(HasSubstr("no counters: no permission\n"),
                    HasSubstr("candidate      Not profiled: it crashed.\n"),
                    HasSubstr("One call takes 100.0 us in all; 90 % of the time is in aten::mm."),
                    HasSubstr("       10.0 us     2 x  aten::add\n")));
  const auto json = to_json(profile);
  EXPECT_EQ(json["sides"]["candidate"]["error"], "it crashed");
  EXPECT_EQ(json["sides"]["reference"]["operators"][0]["name"], "aten::mm");
}

TEST(Operators, AnAnswerIsReadStrictly) {
  const auto error = [](const char* text) {
    return parse_operators(nlohmann::json::parse(text)).error();
  };
  EXPECT_EQ(error("[]"), "the profiled process gave no answer");
  EXPECT_THAT(error(R"({"ok": 1})"), HasSubstr("does not say why"));
  EXPECT_THAT(error(R"({"ok": true, "time_us": 1})"), HasSubstr("no list of operators"));
  EXPECT_THAT(error(R"({"ok": true, "operators": [], "time_us": -1})"), HasSubstr("no time"));
  EXPECT_THAT(error(R"({"ok": true, "operators": [7], "time_us": 1})"), HasSubstr("not an object"));
  EXPECT_EQ(error(R"({"ok": false, "error": {"kind": "x",
                  "text": "Traceback:\n  File x\nValueError: \u001b[31mbad\n"}})"),
            "ValueError: bad");
}

}  // namespace
}  // namespace kb::profile
