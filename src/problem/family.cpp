#include "problem/family.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "problem/python_tokens.h"

namespace kb::problem {
namespace {

constexpr std::array<std::string_view, 12> kFamilies = {
    "transformer", "recurrent", "transposed convolution", "convolution", "scan",      "matmul",
    "loss",        "pooling",   "normalization",          "activation",  "reduction", "other"};
enum Family {
  transformer,
  recurrent,
  transposed,
  convolution,
  scan,
  matmul,
  loss,
  pooling,
  normalization,
  activation,
  reduction,
  other
};

// A word of a name in lower case: the whole, a beginning (`conv*`) or an end (`*loss`).
struct Word {
  std::string_view pattern;
  Family family;
};
constexpr Word kWords[] = {{"*transformer", transformer},
                           {"transformers", transformer},
                           {"*attention", transformer},
                           {"scaled_dot_product*", transformer},
                           {"lstm*", recurrent},
                           {"gru*", recurrent},
                           {"rnn*", recurrent},
                           {"i2h", recurrent},
                           {"convtranspose*", transposed},
                           {"conv_transpose*", transposed},
                           {"conv1d", convolution},
                           {"conv2d", convolution},
                           {"conv3d", convolution},
                           {"cumsum", scan},
                           {"cumprod", scan},
                           {"matmul", matmul},
                           {"mm", matmul},
                           {"bmm", matmul},
                           {"addmm", matmul},
                           {"einsum", matmul},
                           {"linear", matmul},
                           {"*loss", loss},
                           {"cross_entropy", loss},
                           {"kl_div", loss},
                           {"cosine_similarity", loss},
                           {"maxpool*", pooling},
                           {"avgpool*", pooling},
                           {"max_pool*", pooling},
                           {"avg_pool*", pooling},
                           {"adaptive*", pooling},
                           {"*norm", normalization},
                           {"batchnorm*", normalization},
                           {"instancenorm*", normalization},
                           {"batch_norm", normalization},
                           {"rsqrt", normalization},
                           {"relu*", activation},
                           {"leaky_relu", activation},
                           {"leakyrelu", activation},
                           {"sigmoid", activation},
                           {"tanh", activation},
                           {"softmax", activation},
                           {"log_softmax", activation},
                           {"logsoftmax", activation},
                           {"gelu", activation},
                           {"selu", activation},
                           {"elu", activation},
                           {"softplus", activation},
                           {"softsign", activation},
                           {"swish", activation},
                           {"hardsigmoid", activation},
                           {"hardtanh", activation},
                           {"mish", activation},
                           {"sum", reduction},
                           {"mean", reduction},
                           {"max", reduction},
                           {"min", reduction},
                           {"amax", reduction},
                           {"amin", reduction},
                           {"argmax", reduction},
                           {"argmin", reduction},
                           {"prod", reduction},
                           {"logsumexp", reduction}};

bool fits(std::string_view name, std::string_view pattern) {
  if (pattern.ends_with('*')) return name.starts_with(pattern.substr(0, pattern.size() - 1));
  if (pattern.starts_with('*')) return name.ends_with(pattern.substr(1));
  return name == pattern;
}

Family family_of_word(std::string_view word) {
  std::string name(word);
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  Family found = other;
  for (const Word& each : kWords)
    if (each.family < found && fits(name, each.pattern)) found = each.family;
  return found;
}

}  // namespace

std::string_view family_of(std::string_view name, std::string_view python_source) {
  Family found = other;
  while (!name.empty()) {
    const auto end = std::min(name.find(' '), name.size());
    found = std::min(found, family_of_word(name.substr(0, end)));
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  PythonTokenizer tokens(python_source);
  while (const auto token = tokens.next()) {
    if (token->kind == TokenKind::op && token->text == "@") found = std::min(found, matmul);
    if (token->kind == TokenKind::name) found = std::min(found, family_of_word(token->text));
  }
  return kFamilies[found];
}

std::span<const std::string_view> families() {
  return kFamilies;
}

}  // namespace kb::problem
