#include "problem/python_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kb::problem {
namespace {

TEST(MayBind, SeesEveryBinding) {
  for (const char* source : {
           "class ModelNew(nn.Module):\n  pass\n",
           "class ModelNew: pass",
           "def ModelNew(): return Model()",
           "ModelNew = Model",
           "ModelNew: type = Model",
           "A = ModelNew = Model",
           "A, ModelNew = B, C",
           "(A, ModelNew) = B, C",
           "import fast as ModelNew",
           "from fast import ModelNew",
           "from fast import (\n  A,\n  ModelNew,\n)",
           "from fast import B as ModelNew",
           "from fast import *",
           "if (ModelNew := make()): pass",
           "if True: ModelNew = Model",
           "try:\n  class ModelNew: pass\nexcept: pass",
           "for ModelNew in [Model]: pass",
           "x = 1; ModelNew = 2",
           "globals()['ModelNew'] = Model",
           "exec('class ModelNew: pass')",
           "setattr(sys.modules[__name__], 'Model' + 'New', Model)",
           "sys.modules[__name__].ModelNew = Model",
       }) {
    EXPECT_TRUE(may_bind(source, "ModelNew")) << source;
  }
}

TEST(MayBind, IsFalseWhenNothingBinds) {
  for (const char* source : {
           "",
           "class Model(nn.Module): pass",
           "class ModelNew2: pass",
           "# class ModelNew: pass",
           "'''\nclass ModelNew: pass\n'''",
           "print('ModelNew = 1')",
           "model = ModelNew()",
           "f(ModelNew=1)",
           "x.ModelNew = 1",
           "print(ModelNew)",
           "ModelNew == 1",
           "import a.ModelNew",
           "for m in self.modules(): m.eval()",
       }) {
    EXPECT_FALSE(may_bind(source, "ModelNew")) << source;
  }
}

TEST(DocstringSummary, IsItsFirstLine) {
  EXPECT_EQ(docstring_summary("\"\"\"Adds two.\n\nMore.\"\"\"\nx = 1\n"), "Adds two.");
  EXPECT_EQ(docstring_summary("# licence\n\n'''\n   Adds two.  \r\n'''\n"), "Adds two.");
  EXPECT_EQ(docstring_summary("r'x'"), "x");
  EXPECT_EQ(docstring_summary("''"), "");
  EXPECT_EQ(docstring_summary("'''  \n '''"), "");
  EXPECT_EQ(docstring_summary("b'x'"), "");
  EXPECT_EQ(docstring_summary("f'x'"), "");
  EXPECT_EQ(docstring_summary("'x'.upper()"), "");
  EXPECT_EQ(docstring_summary("import torch\n'x'"), "");
  EXPECT_EQ(docstring_summary("'x"), "");
}

}  // namespace
}  // namespace kb::problem
