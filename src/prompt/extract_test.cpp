#include "prompt/extract.h"

#include <gmock/gmock.h>

#include "prompt/entry_point.h"
#include "prompt/markdown.h"

namespace kb::prompt {
namespace {

using problem::Backend;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr std::string_view kModel = "class ModelNew(nn.Module):\n    pass\n";
constexpr std::string_view kKernel = "extern \"C\" int kb_run(const kb_call* call) { return 0; }\n";

Extraction extract(std::string_view answer, Backend language = Backend::python) {
  auto result = extract_code(answer, language);
  EXPECT_TRUE(result) << (result ? "" : result.error());
  return result ? *result : Extraction{};
}

std::string error_of(std::string_view answer, Backend language = Backend::python) {
  const auto result = extract_code(answer, language);
  EXPECT_FALSE(result) << result->code;
  return result ? "" : result.error();
}

std::string fenced(std::string_view code, std::string_view info = "python") {
  return "```" + std::string(info) + "\n" + std::string(code) + "```\n";
}

std::string model(std::string_view mark) {
  return std::string(kModel) + "# " + std::string(mark) + "\n";
}

// ---- fences
// --------------------------------------------------------------------------------------

TEST(Extract, OneBlockAmongProse) {
  const auto result = extract("Here it is:\n\n" + fenced(kModel) + "\nIt is fast.\n");
  EXPECT_EQ(result.code, kModel);
  EXPECT_EQ(result.how, How::fenced);
  EXPECT_THAT(result.warnings, IsEmpty());
}

TEST(Extract, NativeBlock) {
  for (const auto language : {Backend::cpp, Backend::cuda_cpp, Backend::hip}) {
    const auto result = extract("Text.\n" + fenced(kKernel, "cuda"), language);
    EXPECT_EQ(result.code, kKernel);
    EXPECT_EQ(result.how, How::fenced);
  }
}

TEST(Extract, AFunctionOfTvmFfi) {
  const std::string code =
      "#include <tvm/ffi/function.h>\nvoid Run() {}\nTVM_FFI_DLL_EXPORT_TYPED_FUNC(run, Run);\n";
  const std::string usage = "#include <tvm/ffi/function.h>\nint main() {}\n";
  EXPECT_EQ(extract(fenced(code, "cpp") + fenced(usage, "cpp"), Backend::cpp).code, code);
  EXPECT_EQ(extract(fenced(usage, "cpp") + fenced(code, "cpp"), Backend::cuda_cpp).code, code);
  error_of("It ends with " + code.substr(code.find("TVM_FFI")), Backend::cpp);
}

TEST(Extract, AnyLabelOrNone) {
  for (const auto* info :
       {"", "python", "py", "Python3", "triton", "{.python}", "python title=m.py", "unheard-of"})
    EXPECT_EQ(extract(fenced(kModel, info)).code, kModel) << info;
  for (const auto* info : {"", "cpp", "c++", "cuda", "CUDA", "cu", "hip"})
    EXPECT_EQ(extract(fenced(kKernel, info), Backend::cuda_cpp).code, kKernel) << info;
}

TEST(Extract, TildesAndLongFences) {
  EXPECT_EQ(extract("~~~python\n" + std::string(kModel) + "~~~\n").code, kModel);
  const std::string inner = model("x") + "TEXT = '''\n```\nnot the end\n```\n'''\n";
  EXPECT_EQ(extract("````python\n" + inner + "````\n").code, inner);
  // A fence of the other sign, or a shorter one, ends nothing.
  const std::string other = model("x") + "~~~\n";
  EXPECT_EQ(extract(fenced(other)).code, other);
}

TEST(Extract, IndentedFenceLosesItsIndentation) {
  const auto result = extract(
      "1. The kernel:\n\n"
      "    ```python\n"
      "    class ModelNew(nn.Module):\n"
      "        x = 1\n"
      "\n"
      "    y = 2\n"
      "    ```\n");
  EXPECT_EQ(result.code, "class ModelNew(nn.Module):\n    x = 1\n\ny = 2\n");
}

TEST(Extract, WindowsLineEnds) {
  EXPECT_EQ(extract("Text\r\n```python\r\nclass ModelNew:\r\n    pass\r\n```\r\n").code,
            "class ModelNew:\n    pass\n");
}

TEST(Extract, FenceInsideATripleQuotedStringIsCode) {
  const std::string code =
      "class ModelNew:\n    \"\"\"Use it so:\n\n    ```\n    ModelNew()\n    ```\n    \"\"\"\n"
      "    y = 1\n";
  const auto result = extract(fenced(code) + "Done.\n");
  EXPECT_EQ(result.code, code);
  EXPECT_EQ(result.how, How::fenced);
}

TEST(Extract, FenceInsideACommentOfNativeCodeIsCode) {
  const std::string code = "/* Usage:\n```\nnothing\n```\n*/\n" + std::string(kKernel);
  EXPECT_EQ(extract(fenced(code, "cpp"), Backend::cpp).code, code);
}

TEST(Extract, UnbalancedQuotesDoNotSwallowTheAnswer) {
  const auto result = extract(fenced("x = \"\"\"oops\n") + "Better:\n" + fenced(kModel));
  EXPECT_EQ(result.code, kModel);
  EXPECT_EQ(result.how, How::fenced);
}

TEST(Extract, BackticksInStringsAndProse) {
  const std::string code = model("x") + "s = '``` no fence'\nt = 1  # ```\n";
  EXPECT_EQ(extract("Use ```this``` word.\n" + fenced(code)).code, code);
}

TEST(Extract, MarkdownBlockIsLookedInto) {
  EXPECT_EQ(extract("```markdown\n# Title\n" + fenced(kModel) + "```\n").code, kModel);
}

// ---- which block
// ---------------------------------------------------------------------------------

TEST(Extract, LastCompleteBlockThatDefinesTheEntryPoint) {
  const auto result = extract(fenced(model("first")) + "No, better:\n" + fenced(model("second")) +
                              "Try it:\n" + fenced("print(ModelNew())\n"));
  EXPECT_EQ(result.code, model("second"));
  EXPECT_THAT(result.warnings, ElementsAre(HasSubstr("1 earlier block defines")));
}

TEST(Extract, CompleteDraftWinsOverACutOffOne) {
  const auto result = extract(fenced(model("first")) + "Better:\n```python\n" + model("second"));
  EXPECT_EQ(result.code, model("first"));
  EXPECT_EQ(result.how, How::fenced);
  EXPECT_THAT(result.warnings, ElementsAre(HasSubstr("later block is cut off")));
}

TEST(Extract, CutOffBlockAlone) {
  const auto result = extract("Here:\n```python\n" + std::string(kModel) + "    def forw");
  EXPECT_EQ(result.code, std::string(kModel) + "    def forw\n");
  EXPECT_EQ(result.how, How::truncated);
  EXPECT_THAT(result.warnings, ElementsAre(HasSubstr("never closed")));
}

TEST(Extract, OtherLanguagesAreNoCandidates) {
  const auto result = extract(fenced(kModel) + fenced("+class ModelNew:\n", "diff") +
                              fenced("echo class ModelNew\n", "bash"));
  EXPECT_EQ(result.code, kModel);
}

TEST(Extract, MentionsInStringsAndCommentsDefineNothing) {
  const auto result = extract(fenced(kModel) + fenced("# class ModelNew\ns = 'class ModelNew'\n"));
  EXPECT_EQ(result.code, kModel);
  const auto native = extract(
      fenced(kKernel, "cpp") + fenced("// int kb_run(x) {\nint kb_run(const kb_call*);\n", "cpp"),
      Backend::cpp);
  EXPECT_EQ(native.code, kKernel);
}

TEST(Extract, AssignedOrImportedModelNew) {
  EXPECT_EQ(extract(fenced("ModelNew = make()\n")).how, How::fenced);
  EXPECT_EQ(extract(fenced("from x import Y as ModelNew\n")).how, How::fenced);
  EXPECT_EQ(extract(fenced("m = ModelNew()\n")).how, How::guessed);
}

TEST(Extract, GuessWhenNoBlockDefinesIt) {
  const auto result = extract(fenced("class Model:\n    pass\n"));
  EXPECT_EQ(result.code, "class Model:\n    pass\n");
  EXPECT_EQ(result.how, How::guessed);
  EXPECT_THAT(result.warnings, ElementsAre(HasSubstr("no block defines ModelNew")));
}

TEST(Extract, NativeBackendIgnoresPythonsEntryPoint) {
  const auto result =
      extract(fenced(kModel) + fenced(kKernel, "cuda") + fenced(kModel), Backend::cuda_cpp);
  EXPECT_EQ(result.code, kKernel);
}

// ---- blocks that belong together
// -------------------------------------------------------------------

TEST(Extract, DefinitionsOfAnEarlierBlockAreTakenIn) {
  const std::string kernel = "import triton\n\n@triton.jit\ndef kernel(x):\n    pass\n";
  const std::string user = "class ModelNew:\n    def forward(self, x):\n        kernel[(1,)](x)\n";
  const auto result = extract("The kernel:\n" + fenced(kernel) + "The module:\n" + fenced(user));
  EXPECT_EQ(result.how, How::joined);
  EXPECT_THAT(result.code, StartsWith(kernel));
  EXPECT_TRUE(result.code.ends_with(user));
}

TEST(Extract, ConstantsWithSourcesAreTakenIn) {
  const std::string source = "cuda_source = r'''\n__global__ void f() {}\n'''\n";
  const std::string user = "class ModelNew:\n    ext = load_inline(cuda_sources=cuda_source)\n";
  const auto result = extract(fenced(source) + fenced(user));
  EXPECT_EQ(result.how, How::joined);
  EXPECT_THAT(result.code, StartsWith(source));
}

TEST(Extract, BlocksThatAreNotMissedStayOut) {
  const std::string example = "x = 1\ndef helper():\n    pass\n";
  const std::string self_contained =
      "def helper():\n    return 1\n\nclass ModelNew:\n    def forward(self, x):\n"
      "        return helper() + self.helper + x\n";
  const auto result = extract(fenced(example) + fenced(self_contained));
  EXPECT_EQ(result.code, self_contained);
  EXPECT_EQ(result.how, How::fenced);
}

TEST(Extract, LastOfTwoDraftsOfAHelperIsTakenIn) {
  const std::string user = "class ModelNew:\n    y = helper()\n";
  const auto result = extract(fenced("def helper():\n    return 1\n") +
                              fenced("def helper():\n    return 2\n") + fenced(user));
  EXPECT_THAT(result.code, HasSubstr("return 2"));
  EXPECT_THAT(result.code, Not(HasSubstr("return 1")));
}

TEST(Extract, NamedCudaFileIsWrittenIntoThePythonBlock) {
  const std::string answer =
      "`scale.cu`:\n" + fenced("__global__ void scale() { \"\\n\"; }\n", "cuda") + "`model.py`:\n" +
      fenced(
          "from __future__ import annotations\n"
          "from torch.utils.cpp_extension import load\n"
          "ext = load(name='scale', sources=['csrc/scale.cu'])\n" +
          std::string(kModel));
  const auto result = extract(answer);
  EXPECT_EQ(result.how, How::joined);
  EXPECT_EQ(result.code,
            "from __future__ import annotations\n"
            "# The files below are other blocks of the same answer, which this code names.\n"
            "import pathlib as _answer_pathlib\n"
            "import tempfile as _answer_tempfile\n"
            "_answer_folder = _answer_pathlib.Path(_answer_tempfile.mkdtemp())\n"
            "(_answer_folder / \"scale.cu\").write_text((\n"
            "    \"__global__ void scale() { \\\"\\\\n\\\"; }\\n\"\n"
            "))\n"
            "from torch.utils.cpp_extension import load\n"
            "ext = load(name='scale', sources=[str(_answer_folder / \"scale.cu\")])\n" +
                std::string(kModel));
}

TEST(Extract, OnlyNativeBlockAndOnlyNameBelongTogether) {
  const auto result = extract(fenced("__global__ void f();\n", "cuda") +
                              fenced("ext = load(sources=['a.cu'])\n" + std::string(kModel)));
  EXPECT_EQ(result.how, How::joined);
}

TEST(Extract, UnnamedNativeBlockStaysOut) {
  const auto result = extract(fenced("__global__ void f();\n", "cuda") + fenced(kModel));
  EXPECT_EQ(result.code, kModel);
  EXPECT_EQ(result.how, How::fenced);
}

TEST(Extract, HeaderBlockTakesTheIncludesPlace) {
  const std::string kernel = "#include \"tile.cuh\"\n" + std::string(kKernel);
  const auto result = extract(
      "`tile.cuh`\n" + fenced("struct Tile {};\n", "cuda") + "Kernel:\n" + fenced(kernel, "cuda"),
      Backend::cuda_cpp);
  EXPECT_EQ(result.how, How::joined);
  EXPECT_EQ(result.code, "struct Tile {};\n\n" + std::string(kKernel));
}

// ---- no fences
// -----------------------------------------------------------------------------------

TEST(Extract, BareCode) {
  const std::string code = "import torch\n\n\n" + std::string(kModel);
  const auto result = extract(code);
  EXPECT_EQ(result.code, code);
  EXPECT_EQ(result.how, How::bare);
  EXPECT_EQ(extract("#include <x.h>\n" + std::string(kKernel), Backend::cpp).how, How::bare);
}

TEST(Extract, BareCodeAmongProse) {
  const std::string code = "import torch\n\n" + std::string(kModel);
  const auto result =
      extract("Here is the kernel you asked for.\n\n" + code + "\nThis fuses both operations.\n");
  EXPECT_EQ(result.code, code);
}

TEST(Extract, MissingOpeningFence) {
  const auto result = extract(std::string(kModel) + "```\nIt is fast.\n");
  EXPECT_EQ(result.code, kModel);
  EXPECT_EQ(result.how, How::bare);
}

TEST(Extract, ProseAloneIsAnError) {
  EXPECT_THAT(error_of("I cannot write this kernel."), HasSubstr("no code block"));
  EXPECT_THAT(error_of("The class ModelNew is hard.", Backend::cpp), HasSubstr("kb_run"));
  EXPECT_THAT(error_of("Run it:\n" + fenced("make\n", "bash")), HasSubstr("no code block"));
}

TEST(Extract, EmptyIsAnError) {
  EXPECT_EQ(error_of(""), "the answer is empty");
  EXPECT_EQ(error_of(" \n\t\n"), "the answer is empty");
  EXPECT_THAT(error_of("```python\n```\n"), HasSubstr("no code block"));
}

// ---- reasoning
// -----------------------------------------------------------------------------------

TEST(Extract, ReasoningIsNoPartOfTheAnswer) {
  const auto result = extract("<think>\nMaybe\n" + fenced(model("draft")) +
                              "no ``` wait\n</think>\n" + fenced(model("final")));
  EXPECT_EQ(result.code, model("final"));
  EXPECT_THAT(result.warnings, IsEmpty());
}

TEST(Extract, ReasoningWithoutItsOpeningTag) {
  const auto result =
      extract("Hm.\n```python\n" + model("draft") + "</think>\n\n" + fenced(model("final")));
  EXPECT_EQ(result.code, model("final"));
}

TEST(Extract, OtherTagsAndChannels) {
  EXPECT_EQ(extract("<Reasoning>" + fenced(model("d")) + "</Reasoning>\n" + fenced(kModel)).code,
            kModel);
  EXPECT_EQ(extract("<|channel|>analysis<|message|>" + fenced(model("d")) +
                    "<|end|><|start|>assistant<|channel|>final<|message|>\n" + fenced(kModel))
                .code,
            kModel);
}

TEST(Extract, CodeInReasoningAloneIsTakenWithAWarning) {
  const auto result = extract("<think>\n" + fenced(kModel) + "</think>\nThat is it.\n");
  EXPECT_EQ(result.code, kModel);
  EXPECT_THAT(result.warnings, ElementsAre(HasSubstr("reasoning alone")));
}

TEST(Extract, ReasoningThatNeverEnds) {
  const auto result = extract("<think>\nHm.\n" + fenced(kModel));
  EXPECT_EQ(result.code, kModel);
  EXPECT_THAT(result.warnings, ElementsAre(HasSubstr("never closed")));
  EXPECT_THAT(error_of("<think>\nFirst I would"), HasSubstr("cut off"));
  EXPECT_THAT(error_of("<think>\nHm.\n</think>\n"), HasSubstr("empty behind its reasoning"));
}

TEST(Extract, TagsInCodeAreNoReasoning) {
  const std::string code = model("x") + "s = 'a <think> b'\n";
  EXPECT_EQ(extract(fenced(code)).code, code);
}

// ---- bytes
// ---------------------------------------------------------------------------------------

TEST(Extract, BytesThatAreNotUtf8AreReplaced) {
  const auto result = extract(fenced(model("caf\xe9")));
  EXPECT_THAT(result.code, HasSubstr("caf\xEF\xBF\xBD"));
  EXPECT_THAT(result.warnings, ElementsAre(HasSubstr("not UTF-8")));
}

TEST(Extract, ControlCharactersAreDropped) {
  const auto result = extract(std::string("\xEF\xBB\xBF") + "```python\nclass ModelNew:\n" +
                              std::string("\0\x1b[31m", 6) + "    pass\n```\n");
  EXPECT_EQ(result.code, "class ModelNew:\n    pass\n");
}

// Linear: if any step were quadratic, this would take hours.
TEST(Extract, MegabytesOfTrouble) {
  const auto repeated = [](std::string_view part) {
    std::string text;
    while (text.size() < 2u << 20) text += part;
    return text;
  };
  for (const auto* part :
       {"```\n", "```python\n\"\"\"\n```\n", "~~~\n```\n", "<think>\n", "</think>", "<", "kb_run(",
        "R\"x(", "/*", "\"\"\"\n", "class ModelNew", "`", "    ```py\nx='a.cu'\n```\n",
        "#include \"a.h\"\n", "a b c d\n", "kernel = 1\n", "(", "    "}) {
    const std::string text = repeated(part);
    (void)extract_code(text, Backend::python);
    (void)extract_code(text, Backend::cuda_cpp);
    (void)extract_code("```python\n" + std::string(kModel) + text, Backend::python);
  }
}

// ---- parts
// ---------------------------------------------------------------------------------------

TEST(FreeNames, AreTheNamesThatNothingBinds) {
  EXPECT_THAT(free_names("import torch\nfrom a import b as c\n"
                         "def f(x, *y, z=D):\n    w = x + g(y)\n    return w.attribute\n"
                         "for i, j in items:\n    h(i, j)\n"),
              ElementsAre("D", "g", "h", "items"));
}

TEST(TopLevelNames, AreThoseOfTheOutermostLevel) {
  EXPECT_THAT(top_level_names("A = 1\nA == 2\nclass B:\n    c = 1\n    def d(self): pass\n"
                              "def e():\n    f = 1\n"),
              ElementsAre("A", "B", "e"));
}

TEST(EntryPoint, NativeNeedsABody) {
  const auto native = [](std::string_view text) {
    return defines_entry_point(text, Backend::cuda_cpp);
  };
  EXPECT_TRUE(native("KB_EXPORT int kb_run(const kb_call* call) {"));
  EXPECT_TRUE(native("int kb_run ( const kb_call *call )\n{"));
  EXPECT_TRUE(native("int kb_run(const kb_call* c) noexcept {"));
  EXPECT_FALSE(native("int kb_run(const kb_call* call);"));
  EXPECT_FALSE(native("int my_kb_run(const kb_call* call) {"));
  EXPECT_FALSE(native("// int kb_run(const kb_call* call) {"));
  EXPECT_FALSE(native("auto s = \"int kb_run(const kb_call* call) {\";"));
  EXPECT_FALSE(native("return kb_run(call);"));
}

TEST(Markdown, ReasoningIsTakenOutOnce) {
  const auto result = without_reasoning("a\n<think>b</think>c\n<think>d</think>e");
  EXPECT_EQ(result.answer, "a\nc\ne");
  EXPECT_TRUE(result.found);
  EXPECT_FALSE(result.unfinished);
}

}  // namespace
}  // namespace kb::prompt
