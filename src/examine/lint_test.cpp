#include "examine/lint.h"

#include <gmock/gmock.h>

namespace {

using kb::examine::find_duplicates;
using kb::examine::parse_reply;
using kb::examine::parse_run;
using kb::examine::Report;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

nlohmann::json reply() {
  return nlohmann::json::parse(R"({
    "ok": true, "size": "small", "altered": "", "notes": ["not compared"], "weakest": ["bias", 0.25],
    "findings": [{"rule": "zero", "text": "zeros pass for output 0"}],
    "spec": {"inputs": [{"kind": "tensor", "dtype": "float32", "shape": [2, 3]}],
             "outputs": [{"dtype": "float32", "shape": [2]}],
             "params": [{"name": "bias", "dtype": "float32", "shape": [3], "buffer": false}],
             "uses_rng": false, "repeatable": true, "mutates_inputs": false, "flops": 0, "sizes": ["small"]}})");
}

TEST(Lint, ReadsAReply) {
  Report report;
  ASSERT_TRUE(parse_reply(reply(), report));
  EXPECT_EQ(report.size, "small");
  EXPECT_THAT(report.findings, ElementsAre(Field(&kb::examine::Finding::rule, "zero")));
  EXPECT_THAT(report.notes, ElementsAre("not compared"));
  EXPECT_EQ(report.weakest, (std::pair<std::string, double>{"bias", 0.25}));
  EXPECT_EQ(report.spec->params.size(), 1u);
}

TEST(Lint, ReadsNoReplyThatIsNotOne) {
  for (const char* member : {"findings", "notes", "size", "altered", "spec"}) {
    auto broken = reply();
    broken.erase(member);
    Report report;
    EXPECT_FALSE(parse_reply(broken, report)) << member;
  }
  for (const auto& [member, value] : std::vector<std::pair<const char*, nlohmann::json>>{
           {"findings", {1}},
           {"findings", {{{"rule", "zero"}}}},
           {"findings",
            nlohmann::json(std::vector<nlohmann::json>(1000, {{"rule", "a"}, {"text", "b"}}))},
           {"notes", {1}},
           {"weakest", {"bias"}},
           {"weakest", {1, "bias"}},
           {"spec", {{"inputs", 1}}}}) {
    auto broken = reply();
    broken[member] = value;
    Report report;
    EXPECT_FALSE(parse_reply(broken, report)) << member << " " << value;
  }
}

TEST(Lint, ReadsARun) {
  auto run = reply();
  for (const char* member : {"altered", "notes", "weakest"}) run.erase(member);
  Report report;
  EXPECT_FALSE(parse_run(run, report)) << "without its peak";
  for (const auto& peak : {nlohmann::json("much"), nlohmann::json(-1), nlohmann::json(nullptr)}) {
    run["peak_bytes"] = peak;
    EXPECT_FALSE(parse_run(run, report)) << peak;
  }
  run["peak_bytes"] = 1u << 20;
  report = {};
  ASSERT_TRUE(parse_run(run, report));
  EXPECT_EQ(report.peak_bytes, 1u << 20);
  EXPECT_THAT(report.findings, ElementsAre(Field(&kb::examine::Finding::rule, "zero")));
  EXPECT_EQ(report.spec->outputs.size(), 1u);
}

TEST(Lint, ShowsNoControlCharactersOfAFile) {
  auto drives_the_terminal = reply();
  drives_the_terminal["findings"][0]["text"] = "\x1b[2J";
  drives_the_terminal["altered"] = "a\nb";
  Report report;
  ASSERT_TRUE(parse_reply(drives_the_terminal, report));
  EXPECT_EQ(report.findings[0].text, "?[2J");
  EXPECT_EQ(report.altered, "a?b");
}

TEST(Lint, FindsDuplicatesAmongAllProblems) {
  std::vector<kb::problem::Problem> all(4);
  for (int i = 0; i < 4; ++i) {
    all[i].label = "level1/" + std::to_string(i + 1);
    all[i].hash = i < 3 ? "same" : "other";
  }
  std::vector<Report> reports = {{.label = "level1/2", .hash = "same"},
                                 {.label = "level1/4", .hash = "other"}};
  find_duplicates(reports, all);
  EXPECT_THAT(reports[0].findings,
              ElementsAre(Field(&kb::examine::Finding::text, HasSubstr("level1/1, level1/3"))));
  EXPECT_THAT(reports[1].findings, IsEmpty());
}

}  // namespace
