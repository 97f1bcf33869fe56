#include "problem/problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "digest/sha256.h"
#include "problem/text_file.h"

namespace kb::problem {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::string kGood =
    "\"\"\"Adds.\"\"\"\nclass Model:\n    pass\n\ndef get_inputs():\n    return []\n";

class Files : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "kb_problem_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override {
    unsetenv("KERNELBENCH_HOME");
    fs::remove_all(root_);
  }
  fs::path write(const fs::path& name, const std::string& text = kGood) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name, std::ios::binary) << text;
    return root_ / name;
  }
  fs::path root_;
};

template <typename T>
std::string error_of(const std::expected<T, std::string>& result) {
  return result ? "no error" : result.error();
}

TEST(ParseId, AcceptsThreeForms) {
  EXPECT_EQ(parse_id("level1/19"), (Id{1, 19}));
  EXPECT_EQ(parse_id("1/19"), (Id{1, 19}));
  EXPECT_EQ(parse_id("level_1_problem_19"), (Id{1, 19}));
  EXPECT_EQ((Id{1, 19}).text(), "level1/19");
  for (const char* text :
       {"", "level1", "level1/", "/19", "level1/0", "level0/1", "0/1", "level1/19x", "level-1/2",
        "level1/-2", " 1/2", "1/2 ", "level1/99999999999", "level_1/19", "level1_problem_19",
        "1_problem_19", "1.5/2"}) {
    EXPECT_EQ(parse_id(text), std::nullopt) << text;
  }
}

TEST(Utf8, IsStrict) {
  EXPECT_TRUE(is_utf8("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"));
  for (const char* bytes : {"\xff", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                            "\xc3", "\xe2\x82", "\x80"}) {
    EXPECT_FALSE(is_utf8(bytes));
  }
}

TEST(ParseRanges, ReadsSets) {
  EXPECT_THAT(parse_ranges("1-3,19").value(), ElementsAre(1, 2, 3, 19));
  EXPECT_THAT(parse_ranges(" 19 , 2 - 3,3").value(), ElementsAre(2, 3, 19));
  for (const char* text : {"", ",", "1,", "a", "1-", "-3", "1--3", "1-2-3", "0", "0-3", "5-2",
                           "1-1000000000000", "1-999999"}) {
    EXPECT_FALSE(parse_ranges(text)) << text;
  }
  EXPECT_THAT(error_of(parse_ranges("5-2")), HasSubstr("write 2-5"));
}

TEST(FormatRanges, Shortens) {
  EXPECT_EQ(format_ranges({1, 2, 4, 5, 6, 19}), "1, 2, 4-6, 19");
  EXPECT_EQ(format_ranges({}), "");
  std::vector<int> odd;
  for (int i = 1; i < 200; i += 2) odd.push_back(i);
  EXPECT_TRUE(format_ranges(odd).ends_with("59, …"));
}

TEST_F(Files, LoadFileFillsEverything) {
  const auto problem = load_file(write("level1/19_ReLU_of_x.py")).value();
  EXPECT_EQ(problem.id, (Id{1, 19}));
  EXPECT_EQ(problem.label, "level1/19");
  EXPECT_EQ(problem.name, "ReLU of x");
  EXPECT_EQ(problem.summary, "Adds.");
  EXPECT_EQ(problem.source, kGood);
  EXPECT_EQ(problem.hash, code_hash(kGood));
  EXPECT_TRUE(problem.path.is_absolute());

  const auto loose = load_file(write("my_problem.py")).value();
  EXPECT_EQ(loose.id, std::nullopt);
  EXPECT_EQ(loose.label, (root_ / "my_problem.py").string());
  EXPECT_EQ(loose.name, "my problem");
  EXPECT_EQ(load_file(write("elsewhere/19_ReLU.py")).value().id, std::nullopt);
}

TEST_F(Files, LoadFileSaysWhatIsWrong) {
  EXPECT_THAT(error_of(load_file(root_ / "none.py")), HasSubstr("does not exist"));
  EXPECT_THAT(error_of(load_file(root_)), HasSubstr("is a folder"));
  EXPECT_THAT(error_of(load_file(write("a.py", "class Model: pass\n# def get_inputs(): pass\n"))),
              HasSubstr("a.py is not a problem: it defines no get_inputs(); see docs/problems.md"));
  EXPECT_THAT(error_of(load_file(write("b.py", "def get_inputs(): pass\nx = 'class Model'\n"))),
              HasSubstr("defines no class Model"));
  EXPECT_THAT(error_of(load_file(write("empty.py", ""))), HasSubstr("defines no class Model"));
  EXPECT_THAT(error_of(load_file(write("latin.py", kGood + "# \xe4\n"))), HasSubstr("not UTF-8"));
  EXPECT_THAT(error_of(load_file(write("nul.py", kGood + std::string(1, '\0')))), HasSubstr("NUL"));
  EXPECT_THAT(error_of(load_file(write("big.py", kGood + std::string(kMaxSourceBytes, '#')))),
              HasSubstr("4 MiB"));
  EXPECT_TRUE(
      load_file(write("fits.py", kGood + std::string(kMaxSourceBytes - kGood.size(), '#'))));
  // A syntax error is for the worker to find.
  EXPECT_TRUE(load_file(write("bad.py", kGood + "def (\n")));
  EXPECT_TRUE(load_file(write("assigned.py", "Model = A\nget_inputs = lambda: []\n")));
}

TEST_F(Files, DoesNotWaitForAFifoOrReadADevice) {
  const fs::path fifo = root_ / "fifo.py";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THAT(error_of(load_file(fifo)), HasSubstr("not a regular file"));
  EXPECT_THAT(error_of(load_file("/dev/zero")), HasSubstr("not a regular file"));
  EXPECT_THAT(error_of(load_file("/proc/self/mem")), Not(HasSubstr("no error")));
}

TEST_F(Files, MessagesHoldNoControlCharacters) {
  EXPECT_THAT(error_of(load_file(root_ / "a\n\x1b[31m.py")),
              HasSubstr("a??[31m.py does not exist"));
}

TEST_F(Files, CatalogListsInOrderOfId) {
  write("level2/3_c.py");
  write("level1/19_ReLU.py");
  write("level1/2_Add_two.py");
  write("level1/notes.txt", "x");
  write("level1/helper.py", "x");
  write("level1/0_zero.py");
  write("levels/1_a.py");
  write("level1_5.py");
  fs::create_directories(root_ / "level1/7_folder.py");
  const auto catalog = Catalog::open(root_).value();
  std::vector<std::string> found;
  for (const auto& entry : catalog.entries()) found.push_back(entry.id.text() + " " + entry.name);
  EXPECT_THAT(found, ElementsAre("level1/2 Add two", "level1/19 ReLU", "level2/3 c"));
  EXPECT_EQ(catalog.load({1, 19}).value().label, "level1/19");
  EXPECT_EQ(error_of(catalog.load({1, 101})), "level1 has no problem 101; its ids are 2, 19");
  EXPECT_EQ(error_of(catalog.load({4, 1})), "there is no level 4; the levels are 1, 2");
}

TEST_F(Files, CatalogSaysWhatIsWrong) {
  EXPECT_THAT(error_of(Catalog::open(root_ / "none")), HasSubstr("is not a folder"));
  EXPECT_THAT(error_of(Catalog::open(root_)), HasSubstr("holds no problems"));
  write("level1/19_ReLU.py");
  write("level1/019_GELU.py");
  EXPECT_THAT(error_of(Catalog::open(root_)),
              AllOf(HasSubstr("019_GELU.py"), HasSubstr("are both level1/19")));
}

TEST_F(Files, FindTakesAnIdOrAPath) {
  write("problems/level1/19_ReLU.py");
  setenv("KERNELBENCH_HOME", root_.c_str(), 1);
  EXPECT_EQ(find("level1/19").value().label, "level1/19");
  EXPECT_EQ(find("1/19").value().name, "ReLU");
  EXPECT_EQ(find((root_ / "problems/level1/19_ReLU.py").string()).value().id, (Id{1, 19}));
  EXPECT_EQ(error_of(find("level1/101")), "level1 has no problem 101; its ids are 19");
  EXPECT_THAT(error_of(find("relu")), HasSubstr("no problem or file 'relu'"));
  EXPECT_THAT(error_of(find("")), HasSubstr("no problem or file ''"));
  setenv("KERNELBENCH_HOME", "/nonexistent", 1);
  EXPECT_THAT(error_of(find("level1/19")), HasSubstr("/nonexistent/problems"));
}

TEST_F(Files, InstallationIsFoundBesideTheExecutable) {
  root_ = fs::canonical(root_);
  fs::create_directories(root_ / "repo/problems");
  fs::create_directories(root_ / "repo/build/release");
  EXPECT_EQ(installation_root(nullptr, root_ / "repo/build/release/kernelbench"), root_ / "repo");
  EXPECT_EQ(installation_root("", root_ / "repo/build/release/kernelbench"), root_ / "repo");
  fs::create_directories(root_ / "usr/bin");
  fs::create_directories(root_ / "usr/share/kernelbench/problems");
  EXPECT_EQ(installation_root(nullptr, root_ / "usr/bin/kernelbench"),
            root_ / "usr/share/kernelbench");
  EXPECT_EQ(installation_root("/opt/kb", root_ / "usr/bin/kernelbench"), "/opt/kb");
}

TEST(BundledSet, Loads) {
  const auto catalog = Catalog::open(bundled_root());
  ASSERT_TRUE(catalog) << catalog.error();
  for (const auto& entry : catalog->entries()) {
    const auto problem = catalog->load(entry.id);
    EXPECT_TRUE(problem) << error_of(problem);
    if (problem) {
      EXPECT_NE(problem->summary, "") << entry.path;
    }
  }
}

TEST_F(Files, LoadCandidateKnowsTheBackend) {
  EXPECT_EQ(load_candidate(write("a.py", "x")).value().backend, Backend::python);
  EXPECT_EQ(load_candidate(write("a.cpp", "x")).value().backend, Backend::cpp);
  EXPECT_EQ(load_candidate(write("a.cc", "x")).value().backend, Backend::cpp);
  EXPECT_EQ(load_candidate(write("a.cu", "x")).value().backend, Backend::cuda_cpp);
  EXPECT_EQ(load_candidate(write("a.py", "abc")).value().hash, sha256_hex("abc"));
  EXPECT_EQ(name_of(Backend::cuda_cpp), "cuda_cpp");
  const auto hip = load_candidate(write("a.hip", "x")).value();
  EXPECT_EQ(hip.backend, Backend::hip);
  EXPECT_EQ(hip.language, Language::hip);
  EXPECT_EQ(name_of(Backend::hip), "hip");
  EXPECT_THAT(error_of(load_candidate(root_ / "none.py")), HasSubstr("does not exist"));
  EXPECT_THAT(error_of(load_candidate(root_)), HasSubstr("is a folder"));
  EXPECT_THAT(error_of(load_candidate(write("a.txt", "x"))), HasSubstr("suffix"));
  EXPECT_THAT(error_of(load_candidate(write("blank.py", " \n\t"))), HasSubstr("is empty"));
  EXPECT_THAT(error_of(load_candidate(write("blank.cpp", ""))), HasSubstr("is empty"));
}

TEST(ParseSampleName, TakesKernelBenchNames) {
  const auto sample = parse_sample_name("run/level_1_problem_19_sample_0_kernel.py");
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->id, (Id{1, 19}));
  EXPECT_EQ(sample->sample, 0);
  EXPECT_EQ(sample->path, "run/level_1_problem_19_sample_0_kernel.py");
  EXPECT_EQ(parse_sample_name("level_4_problem_2_sample_12_kernel.cu")->sample, 12);
  EXPECT_EQ(parse_sample_name("level_4_problem_2_sample_13_kernel.hip")->sample, 13);
  for (const char* name :
       {"", "kernel.py", "level_1_problem_19_sample_0.py", "level_1_problem_19_sample_0_kernel.txt",
        "level_1_problem_19_sample_0_kernel", "level_0_problem_19_sample_0_kernel.py",
        "level_1_problem_0_sample_0_kernel.py", "level_1_problem_19_sample_-1_kernel.py",
        "xlevel_1_problem_19_sample_0_kernel.py", "level_1_problem_19_sample_0_kernel.py.bak",
        "level_1_problem_99999999999_sample_0_kernel.py"}) {
    EXPECT_FALSE(parse_sample_name(name)) << name;
  }
}

TEST_F(Files, FindSamplesIsOrderedAndComplete) {
  write("level_1_problem_19_sample_1_kernel.py");
  write("level_1_problem_19_sample_0_kernel.cpp");
  write("level_2_problem_1_sample_0_kernel.cu");
  write("level_1_problem_2_sample_0_kernel.py");
  write("eval_results.json");
  write("deeper/level_1_problem_3_sample_0_kernel.py");
  std::vector<std::string> found;
  const auto samples = find_samples(root_).value();
  for (const auto& sample : samples)
    found.push_back(sample.id.text() + "#" + std::to_string(sample.sample));
  EXPECT_THAT(found, ElementsAre("level1/2#0", "level1/19#0", "level1/19#1", "level2/1#0"));

  write("level_1_problem_19_sample_0_kernel.py");
  EXPECT_THAT(error_of(find_samples(root_)),
              AllOf(HasSubstr("sample_0_kernel.cpp"), HasSubstr("are both sample 0 of level1/19")));
}

TEST_F(Files, FindSamplesSaysWhatIsWrong) {
  EXPECT_THAT(error_of(find_samples(root_ / "none")), HasSubstr("there is no folder"));
  EXPECT_THAT(error_of(find_samples(write("file"))), HasSubstr("is not a folder"));
  fs::create_directories(root_ / "empty");
  EXPECT_THAT(error_of(find_samples(root_ / "empty")), HasSubstr("holds no samples"));
}

}  // namespace
}  // namespace kb::problem
