// `kernelbench prompt`, as a user calls it.
#include <gmock/gmock.h>

#include "run_command.h"

namespace kb::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

nlohmann::json prompt_json(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "prompt");
  arguments.emplace_back("--json");
  const auto outcome = kernelbench(arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  auto json = nlohmann::json::parse(outcome.out, nullptr, false);
  EXPECT_TRUE(json.is_object()) << outcome.out;
  return json.is_object() ? json : nlohmann::json::object();
}

TEST(PromptCommand, PrintsBothMessagesAndAnEstimate) {
  const auto outcome = kernelbench({"prompt", "level1/19", "--backend", "triton"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("==== system ====\n"));
  EXPECT_THAT(outcome.out, HasSubstr("\n==== user ====\n"));
  EXPECT_THAT(outcome.out, HasSubstr("return torch.relu(x)"));
  EXPECT_THAT(outcome.err, MatchesRegex("about [0-9]+ tokens\n"));
}

TEST(PromptCommand, JsonHasWhatWouldBeSent) {
  const auto json =
      prompt_json({"level2/12", "--backend", "cuda_cpp", "--shots", "few", "--gpu", "H200",
                   "--with-hardware", "--precision", "bf16", "--size", "small"});
  EXPECT_EQ(json["problem"], "level2/12");
  EXPECT_EQ(json["gpu"], "h200");
  EXPECT_EQ(json["examples"], 3);
  EXPECT_GT(json["estimated_tokens"], 3000);
  ASSERT_EQ(json["messages"].size(), 2u);
  EXPECT_EQ(json["messages"][0]["role"], "system");
  EXPECT_THAT(json["messages"][1]["content"].get<std::string>(),
              AllOf(HasSubstr("4800 GB/s"), HasSubstr("bfloat16"), HasSubstr("SIZES[\"small\"]"),
                    HasSubstr("typedef struct kb_call"), HasSubstr("wgmma")));
}

TEST(PromptCommand, ProblemFileOfOnesOwn) {
  const TemporaryFolder folder;
  const auto file = folder.write("mine.py",
                                 "import torch\nclass Model(torch.nn.Module):\n"
                                 "    def forward(self, x): return x + 1  # {{label}}\n"
                                 "def get_inputs(): return [torch.rand(3)]\n"
                                 "def get_init_inputs(): return []\n");
  const auto json = prompt_json({file, "--shots", "zero"});
  EXPECT_THAT(json["messages"][1]["content"].get<std::string>(),
              HasSubstr("return x + 1  # {{label}}"));
}

TEST(PromptCommand, UsersFileReplacesTexts) {
  const TemporaryFolder folder;
  const auto file = folder.write("mine.toml", "[text]\ntask = \"Do {{problem}}\"\n");
  const auto json = prompt_json({"level1/19", "--prompts", file});
  EXPECT_THAT(json["messages"][1]["content"].get<std::string>(), StartsWith("Do ```python\n"));
}

TEST(PromptCommand, JudgementGoesBack) {
  const TemporaryFolder folder;
  const auto result =
      folder.write("result.json", R"({"verdict": "wrong_value", "message": "first at [3]"})");
  const auto kernel = folder.write("kernel.py", "class ModelNew: pass\n");
  const auto json = prompt_json({"level1/19", "--result", result, "--candidate", kernel});
  ASSERT_EQ(json["messages"].size(), 3u);
  EXPECT_THAT(json["messages"][2]["content"].get<std::string>(),
              AllOf(HasSubstr("values are wrong"), HasSubstr("first at [3]"),
                    HasSubstr("class ModelNew: pass")));
}

TEST(PromptCommand, BadInputGetsOneSentence) {
  const TemporaryFolder folder;
  const auto broken = folder.write("broken.toml", "[text]\nsystem = \"{{nothing}}\"\n");
  const auto no_result = folder.write("result.json", "[]");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"level1/9999"}, "no problem 9999"},
      {{"level1/19", "--backend", "fortran"}, "there is no backend 'fortran'"},
      {{"level1/19", "--precision", "fp8"}, "there is no precision 'fp8'"},
      {{"level1/19", "--shots", "two"}, "--shots is zero, one or few"},
      {{"level1/19", "--gpu", "voodoo"}, "there is no GPU 'voodoo'"},
      {{"level1/19", "--with-hardware"}, "add --gpu NAME"},
      {{"level1/19", "--size", "huge"}, "has no size 'huge'"},
      {{"level1/19", "--prompts", broken}, "broken.toml:2: {{nothing}}"},
      {{"level1/19", "--prompts", "/nowhere"}, "does not exist"},
      {{"level1/19", "--result", no_result}, "go together"},
      {{"level1/19", "--result", no_result, "--candidate", broken}, "eval --json"},
      {{"level1/19", "--result", broken, "--candidate", broken}, "is not JSON"}};
  for (const auto& [arguments, words] : cases) {
    std::vector<std::string> all = {"prompt"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const auto outcome = kernelbench(all);
    EXPECT_EQ(outcome.code, 2) << words;
    EXPECT_THAT(outcome.err, HasSubstr(words));
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.out, "") << words;
  }
}

}  // namespace
}  // namespace kb::test
