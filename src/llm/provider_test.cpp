#include "llm/provider.h"

#include <gmock/gmock.h>

namespace kb::llm {
namespace {

using testing::HasSubstr;
using testing::Not;

Secrets secrets(std::map<std::string, std::string> values) {
  return Secrets([](const char*) -> const char* { return nullptr; }, std::move(values));
}

TEST(Resolve, EveryPreset) {
  for (const auto& preset : presets()) {
    const auto endpoint = resolve({.provider = std::string(preset.name)},
                                  secrets({{std::string(preset.key_variables.front()), "k"}}));
    ASSERT_TRUE(endpoint) << endpoint.error();
    EXPECT_EQ(endpoint->key, "k");
    EXPECT_FALSE(endpoint->base_url.ends_with('/'));
    EXPECT_EQ(endpoint->base_url.starts_with("https://"), preset.needs_key) << preset.name;
    const auto keyless = resolve({.provider = std::string(preset.name)}, secrets({}));
    EXPECT_EQ(keyless.has_value(), !preset.needs_key) << preset.name;
  }
}

TEST(Resolve, OtherFormsOfTheSameProvider) {
  const auto keys = secrets({{"ANTHROPIC_API_KEY", "a"}, {"GOOGLE_API_KEY", "g"}});
  EXPECT_EQ(resolve({.provider = "anthropic", .api = "openai"}, keys)->base_url,
            "https://api.anthropic.com/v1");
  const auto google = resolve({.provider = "google", .api = "openai"}, keys);
  EXPECT_EQ(google->base_url, "https://generativelanguage.googleapis.com/v1beta/openai");
  EXPECT_EQ(google->key, "g");
}

TEST(Resolve, AddressesAsPeopleWriteThem) {
  const auto url = [](const char* text, const char* api) {
    return resolve({.base_url = text, .api = api}, secrets({}))->base_url;
  };
  EXPECT_EQ(url("http://localhost:8000/v1/", "openai"), "http://localhost:8000/v1");
  EXPECT_EQ(url("https://h/v1/chat/completions", "openai"), "https://h/v1");
  EXPECT_EQ(url("https://h/v1/messages", "anthropic"), "https://h");
  EXPECT_EQ(url("https://h", "google"), "https://h/v1beta");
  EXPECT_EQ(url("https://h/v1", "google"), "https://h/v1");
}

TEST(Resolve, AProvidersKeyGoesToNobodyElse) {
  const auto keys = secrets({{"OPENAI_API_KEY", "theirs"}});
  EXPECT_EQ(resolve({.base_url = "https://elsewhere.example/v1"}, keys)->key, "");
  EXPECT_EQ(
      resolve({.base_url = "https://elsewhere.example/v1", .key_variable = "OPENAI_API_KEY"}, keys)
          ->key,
      "theirs");
}

TEST(Resolve, KeysDoNotTravelInTheOpen) {
  const auto keys = secrets({{"KERNELBENCH_API_KEY", "k"}});
  EXPECT_THAT(resolve({.base_url = "http://10.0.0.5/v1"}, keys).error(), HasSubstr("unencrypted"));
  EXPECT_TRUE(resolve({.base_url = "http://10.0.0.5/v1", .insecure_http = true}, keys));
  EXPECT_TRUE(resolve({.base_url = "http://10.0.0.5/v1"}, secrets({})));
  for (const char* own : {"http://localhost/v1", "http://127.0.0.1:80/v1", "http://[::1]:80/v1"})
    EXPECT_TRUE(resolve({.base_url = own}, keys)) << own;
  EXPECT_FALSE(resolve({.base_url = "http://localhost.example/v1"}, keys));
}

TEST(Resolve, BadAddressesQuoteNothing) {
  for (const char* bad :
       {"https://me:secret@host/v1", "https://host/v1?key=secret", "secret", "https://",
        "https://ho st/secret", "file:///secret", "https:///secret"}) {
    const auto endpoint = resolve({.base_url = bad}, secrets({}));
    ASSERT_FALSE(endpoint) << bad;
    EXPECT_THAT(endpoint.error(), Not(HasSubstr("secret")));
  }
}

TEST(Dotenv, Lines) {
  const auto values = parse_dotenv(
      "# comment\n\nA=1\nexport B = two words \r\nC='#3'\nD=\"x y\" # z\nE=5 # "
      "five\nF=a#b\n_G1=\n");
  ASSERT_TRUE(values) << values.error();
  EXPECT_THAT(*values,
              testing::UnorderedElementsAre(
                  testing::Pair("A", "1"), testing::Pair("B", "two words"),
                  testing::Pair("C", "#3"), testing::Pair("D", "x y"), testing::Pair("E", "5"),
                  testing::Pair("F", "a#b"), testing::Pair("_G1", "")));
}

TEST(Dotenv, ErrorsNameTheLineOnly) {
  for (const char* bad : {"A=1\nsecret\n", "A=1\n2B=secret", "A=1\nB='secret\n"}) {
    const auto values = parse_dotenv(bad);
    ASSERT_FALSE(values);
    EXPECT_THAT(values.error(), HasSubstr("line 2"));
    EXPECT_THAT(values.error(), Not(HasSubstr("secret")));
  }
}

TEST(SecretsFind, TheEnvironmentComesFirst) {
  const Secrets both(
      [](const char* name) -> const char* { return std::string_view(name) == "A" ? " env\n" : ""; },
      {{"A", "file"}, {"B", "b"}, {"C", "two words"}});
  const auto find = [&](std::vector<std::string> names) { return both.find(names); };
  EXPECT_EQ(*find({"A"}), "env");
  EXPECT_EQ(*find({"X", "B"}), "b");
  EXPECT_EQ(*find({"X"}), "");
  EXPECT_THAT(find({"C"}).error(),
              testing::AllOf(HasSubstr("C is not a key"), Not(HasSubstr("two"))));
}

}  // namespace
}  // namespace kb::llm
