#include "judge/ceilings.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>

namespace {

using namespace kb::judge;  // NOLINT: what is tested
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

namespace fs = std::filesystem;

Ceilings h200() {
  return {{"NVIDIA H200", "driver 580.159.04", "2.11.0"},
          "2026-11-30T01:20:00Z",
          4.2e12,
          {{"fp32", 5e13}, {"tf32", 4e14}, {"bf16", 7.9e14}},
          2400};
}

class CeilingsFile : public testing::Test {
 protected:
  CeilingsFile() {
    std::string pattern = (fs::temp_directory_path() / "kernelbench-ceilings-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    ::setenv("XDG_DATA_HOME", folder_.c_str(), 1);
  }
  ~CeilingsFile() override {
    ::unsetenv("XDG_DATA_HOME");
    fs::remove_all(folder_);
  }
  static void write(const fs::path& file, const std::string& text) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

 private:
  fs::path folder_;
};

TEST_F(CeilingsFile, IsReadAsItWasWritten) {
  const auto none = load_ceilings(h200().setting);
  ASSERT_TRUE(none) << none.error();
  EXPECT_FALSE(*none) << "not measured yet";

  write(ceilings_file(h200().setting), to_json(h200()).dump());
  const auto loaded = load_ceilings(h200().setting);
  ASSERT_TRUE(loaded) << loaded.error();
  ASSERT_TRUE(*loaded);
  EXPECT_EQ((*loaded)->setting, h200().setting);
  EXPECT_EQ((*loaded)->measured_at, h200().measured_at);
  EXPECT_EQ((*loaded)->copy_bytes_per_s, h200().copy_bytes_per_s);
  EXPECT_EQ((*loaded)->rates, h200().rates);
  EXPECT_EQ((*loaded)->time_slice_us, 2400);

  for (const auto& other : {Setting{"NVIDIA H200", "driver 590.1", "2.11.0"},
                            Setting{"NVIDIA H200", "driver 580.159.04", "2.12.0"},
                            Setting{"NVIDIA H100", "driver 580.159.04", "2.11.0"}}) {
    const auto others = load_ceilings(other);
    ASSERT_TRUE(others);
    EXPECT_FALSE(*others) << "another driver, PyTorch or card has figures of its own";
  }
}

TEST_F(CeilingsFile, OfSomethingElseIsNotUsedAndKept) {
  const Setting setting{"AMD EPYC", "2 CPUs", "2.11.0"};
  const auto file = ceilings_file(setting);
  write(file, to_json(h200()).dump());
  const auto loaded = load_ceilings(setting);
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error(), AllOf(HasSubstr(file.string()), HasSubstr("NVIDIA H200"),
                                    HasSubstr("doctor --measure")));
  EXPECT_TRUE(fs::exists(file));
}

TEST_F(CeilingsFile, ThatIsDamagedIsOneSentence) {
  const auto file = ceilings_file(h200().setting);
  const auto whole = to_json(h200()).dump();
  std::vector<std::string> damaged = {
      "", "null", "[]", "{}", whole.substr(0, whole.size() / 2), std::string("{\0}", 3)};
  const auto with = [&](const char* member, const nlohmann::json& value) {
    auto json = to_json(h200());
    json[member] = value;
    damaged.push_back(json.dump());
  };
  with("kernelbench_ceilings", 2);
  with("kernelbench_ceilings", "1");
  for (const char* member :
       {"device", "platform", "torch", "measured_at", "copy_bytes_per_s", "operations_per_s"})
    for (const auto& value : {nlohmann::json(nullptr), nlohmann::json(-1), nlohmann::json({1, 2})})
      with(member, value);
  with("operations_per_s", {{"fp32", 0}});
  with("operations_per_s", {{"fp32", 1e12}, {"bf16", "fast"}});
  with("operations_per_s", nlohmann::json::object());
  for (const auto& text : damaged) {
    write(file, text);
    const auto loaded = load_ceilings(h200().setting);
    ASSERT_FALSE(loaded) << text;
    EXPECT_THAT(loaded.error(), StartsWith(file.string()));
    EXPECT_EQ(loaded.error().find('\n'), std::string::npos);
  }
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_FALSE(load_ceilings(h200().setting));
}

TEST_F(CeilingsFile, StaysInItsFolderWhateverTheDeviceIsCalled) {
  const Setting odd{"../../x\n/y", "driver ../..", "2.11.0+cpu"};
  EXPECT_EQ(ceilings_file(odd).parent_path(), ceilings_file(h200().setting).parent_path());
}

TEST(Setting, TellsWhatFiguresDependOn) {
  EXPECT_EQ(setting_of({{"name", "NVIDIA H200"}, {"driver", "580.1"}}, "2.11.0"),
            (Setting{"NVIDIA H200", "driver 580.1", "2.11.0"}));
  EXPECT_EQ(setting_of({{"name", "NVIDIA H200"}, {"driver", nullptr}}, "2.11.0").platform,
            "driver unknown");
  EXPECT_EQ(setting_of({{"name", "AMD EPYC"}, {"cpus", 2}}, "2.11.0"),
            (Setting{"AMD EPYC", "2 CPUs", "2.11.0"}));
}

}  // namespace
