#include "problem/language.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "problem/candidate.h"
#include "problem/installation.h"

namespace kb::problem {
namespace {

using testing::HasSubstr;

std::string language(std::string_view source) {
  return std::string(name_of(language_of_python(source)));
}

TEST(LanguageOfPython, GoesByWhatIsImportedAndUsed) {
  for (const auto& [source, name] : std::vector<std::pair<const char*, const char*>>{
           {"import triton\n@triton.jit\ndef f(): pass\n", "triton"},
           {"import triton.language as tl\nx = tl.load(p)\n", "triton"},
           {"from triton import jit\n@jit\ndef f(): pass\n", "triton"},
           {"from triton import (\n  jit,\n  cdiv as c,\n)\nc(1, 2)\n", "triton"},
           {"from triton.language import *\n", "triton"},
           {"try:\n  import triton as t\nexcept ImportError: pass\nt.jit(f)\n", "triton"},
           {"if True: import triton\ntriton.jit(f)\n", "triton"},
           {"import torch; import triton; triton.jit(f)\n", "triton"},
           {"import torch, triton as tr\ntr.jit(f)\n", "triton"},
           {"import importlib\nt = importlib.import_module('triton')\n", "triton"},
           {"def f():\n  import cupy as cp\n  return cp.RawKernel('', 'f')\n", "cupy"},
           {"from cupy import RawKernel\nk = RawKernel(code, 'f')\n", "cupy"},
           {"import cutlass\nimport cutlass.cute as cute\n@cute.kernel\ndef f(): pass\n", "cute"},
           {"import cuda.bindings.driver as cuda\nimport cutlass.cute as cute\ncute.jit(f)\n",
            "cute"},
           {"import tilelang.language as T\n@T.prim_func\ndef f(): pass\n", "tilelang"},
           {"import cuda.tile as ct\n@ct.kernel\ndef f(): pass\n", "cuda_tile"},
           {"from cuda import tile as ct\n@ct.kernel\ndef f(): pass\n", "cuda_tile"},
           {"import cuda.tile\n@cuda.tile.kernel\ndef f(): pass\n", "cuda_tile"},
           {"import helion, triton\nimport helion.language as hl\n@helion.kernel()\n"
            "def f(): triton.cdiv(1, 2)\n",
            "helion"},
           {"import torch\nclass ModelNew(torch.nn.Module): pass\n", "torch"},
           {"", "torch"}})
    EXPECT_EQ(language(source), name) << source;
}

TEST(LanguageOfPython, IsNotFooledByNames) {
  for (const char* source : {
           "# import triton\n# @triton.jit\n",
           "'''\nimport triton\ntriton.jit\n'''\n",
           "x = 'import triton'; triton = 1\n",
           "import triton\n",
           "import triton.language as tl\nx.tl = 1\n",
           "from .triton import jit\njit(f)\n",
           "import tritonish\ntritonish.jit(f)\n",
           "import cuda.bindings.driver as cuda\ncuda.cuInit(0)\n",
           "from cuda import tilefish\ntilefish()\n",
           "import torch\ntorch.triton()\n",
           "print('load_inline __global__')\n",
       })
    EXPECT_EQ(language(source), "torch") << source;
}

TEST(LanguageOfPython, LooksIntoTheSourcesOfExtensions) {
  const std::string load = "from torch.utils.cpp_extension import load_inline\n";
  EXPECT_EQ(language(load + "code = '''__global__ void f() {}'''\n"
                            "m = load_inline('m', '', cuda_sources=code)\n"),
            "cuda");
  EXPECT_EQ(language(load + "m = load_inline('m', cpp_sources='int f();')\n"), "cpp_extension");
  EXPECT_EQ(
      language(load + "'''__global__ is a word of CUDA's'''\nm = load_inline('m', 'int f();')\n"),
      "cpp_extension");
  EXPECT_EQ(language(load + "code = r'''\n#  include \"kittens.cuh\"\n'''\n"
                            "m = load_inline('m', '', cuda_sources=code)\n"),
            "thunderkittens");
  EXPECT_EQ(language(load + "code = '''\n// like kittens.cuh\n__global__ void f() {}'''\n"
                            "m = load_inline('m', '', code)\n"),
            "cuda");
  EXPECT_EQ(language(load + "code = '''\n#include <hip/hip_runtime.h>\n'''\n"
                            "m = load_inline('m', '', cuda_sources=code)\n"),
            "hip");
  EXPECT_EQ(language("import torch.utils.cpp_extension as e\nm = e.load('m', ['k.cu'])\n"), "cuda");
  EXPECT_EQ(language("import torch\nf = torch.cuda._compile_kernel(code, 'f')\n"), "cuda");
  EXPECT_EQ(language("import triton\n" + load + "triton.jit(f)\nload_inline('m', 'int f();')\n"),
            "triton");
}

// Each example is in the language that its folder names.
TEST(LanguageOfPython, KnowsTheExamples) {
  int seen = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(installation_root() /
                                                                        "examples" / "backends")) {
    if (file.path().extension() != ".py") continue;
    const auto candidate = load_candidate(file.path());
    ASSERT_TRUE(candidate) << candidate.error();
    EXPECT_EQ(name_of(candidate->language), file.path().parent_path().filename().string())
        << file.path();
    ++seen;
  }
  EXPECT_GE(seen, 27);
}

TEST(LanguageOfPython, TakesAnyBytes) {
  for (const char* source :
       {"import", "from", "from a", "from a import", "import a as", "from a import (", "import a.",
        "\"\"\"", "__import__(\"", "from . import"})
    EXPECT_EQ(language(source), "torch") << source;
}

TEST(Language, HasOneNameEach) {
  for (const Language one : all_languages()) {
    EXPECT_NE(name_of(one), "");
    EXPECT_EQ(language_named(name_of(one)), one);
  }
  EXPECT_FALSE(language_named(""));
  EXPECT_FALSE(language_named("python"));
}

TEST(Language, RefusesAPrecisionInOneSentence) {
  EXPECT_THAT(refused_precision(Language::tilelang, "fp32", false).value_or(""),
              HasSubstr("tilelang candidates are judged at fp16 and bf16 only"));
  EXPECT_THAT(refused_precision(Language::thunderkittens, "fp16", false).value_or(""),
              HasSubstr("--precision bf16"));
  EXPECT_FALSE(refused_precision(Language::tilelang, "fp16", false));
  EXPECT_FALSE(refused_precision(Language::thunderkittens, "bf16", false));
  for (const char* precision : {"fp32", "fp16", "bf16"})
    EXPECT_FALSE(refused_precision(Language::triton, precision, false));
  EXPECT_THAT(refused_precision(Language::triton, "bf16", true).value_or(""),
              HasSubstr("interpreter on the CPU has no bf16"));
  EXPECT_FALSE(refused_precision(Language::triton, "fp16", true));
}

}  // namespace
}  // namespace kb::problem
