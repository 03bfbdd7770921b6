#pragma once

#include <string>

#include "harness/refusal.h"

namespace trilithon::block_hash {

inline std::vector<double> bytes_of(const std::string& text) {
  std::vector<double> values;
  for (const char c : text) values.push_back(static_cast<double>(static_cast<unsigned char>(c)));
  return values;
}

inline Case& text_input(Case& item, const char* name, const std::string& text) {
  return item.input(name, {static_cast<int64_t>(text.size())}, Fill::values(bytes_of(text)), DType::u8);
}

// `output` holds these bytes, written in hexadecimal.
inline Property equals(std::string output, std::string wanted) {
  return [output, wanted](const PropertyContext& context) -> std::string {
    constexpr const char* digits = "0123456789abcdef";
    std::string given;
    const Outcome outcome = context.run(context.data);
    for (const double value : outcome.values(output)) {
      given += digits[static_cast<int>(value) / 16];
      given += digits[static_cast<int>(value) % 16];
    }
    return given == wanted ? "" : output + " is " + given + ", want " + wanted;
  };
}

// Keeps the first tokens [begin, end) of a chain whose blocks hold two tokens.
inline CaseData part_of(const CaseData& whole, int64_t begin, int64_t end) {
  CaseData part = whole.rows({"tokens"}, begin, end);
  part.tensor("hashes").shape[0] = (end - begin) / 2;
  return part;
}

// A chain continued from its last hash equals the chain over the whole prefix.
inline std::string continued(const PropertyContext& context) {
  const Outcome whole = context.run(context.data);
  const Outcome head = context.run(part_of(context.data, 0, 4));
  CaseData rest = part_of(context.data, 4, 7);
  const std::vector<double> hashes = head.values("hashes");
  rest.values["parent"] = std::vector<double>(hashes.end() - 32, hashes.end());
  const Outcome tail = context.run(rest);
  const std::string difference = compare_rows(head["hashes"], whole["hashes"], 0);
  return difference.empty() ? compare_rows(tail["hashes"], whole["hashes"], 2) : difference;
}

inline void add_cases(CaseList& cases) {
  // Examples of FIPS 180-4, and lengths around the places where padding starts another block.
  struct Vector {
    std::string text;
    const char* hash;
  };
  for (const Vector& v :
       {Vector{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {std::string(100000, 'a'), "6d1cf22d7cc09b085dfc25ee1a1f3ae0265804c607bc2074ad253bcc82fd81ee"},
        {std::string(55, 'x'), "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072"},
        {std::string(56, 'x'), "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e"},
        {std::string(63, 'x'), "75220b47218278e656f2013bb8f0c455a25eaf01e86c64924e9d48d89776d6f2"},
        {std::string(64, 'x'), "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c"},
        {std::string(65, 'x'), "9537c5fdf120482f7d58d25e9ed583f52c02b4e304ea814db1633ad565aed7e9"}}) {
    text_input(cases.add("block-hash.digest", std::to_string(v.text.size()) + " bytes"), "bytes", v.text)
        .output("hash", {32}, DType::u8)
        .property("test vector", equals("hash", v.hash));
  }

  // Written with Node's createHash('sha256'), which is another implementation.
  Case& root = cases.add("block-hash.root", "fields");
  text_input(root, "salt", "r1@v7");
  text_input(root, "profile", "fp32");
  text_input(root, "format", "qwen3/f32/16");
  text_input(root, "tenant", "t0")
      .output("hash", {32}, DType::u8)
      .property("test vector", equals("hash", "c59d3808dd827a1add2c86d5cf1b50e6f5c8f66352377137165cf2b3c3cfc707"))
      .property("borders of fields count", [](const PropertyContext& context) -> std::string {
        CaseData moved = context.data;
        moved.values["salt"] = bytes_of("r1@v");
        moved.values["profile"] = bytes_of("7fp32");
        moved.tensor("salt").shape = {4};
        moved.tensor("profile").shape = {5};
        return context.run(moved).values("hash") == context.run(context.data).values("hash") ? "the same hash" : "";
      });

  cases.add("block-hash.chain", "7 tokens in blocks of 2")
      .input("parent", {32}, Fill::constant(0), DType::u8)
      .input("tokens", {7}, Fill::values({1, 2, 3, 151645, 0, 99, 7}), DType::i32)
      .output("hashes", {3, 32}, DType::u8)
      .integer("block_size", 2)
      .property("test vector", equals("hashes",
                                      "e7ca17d6581d126af7e0c8574cdd8987ed93319969b54a5e2a272d585a38f3ea"
                                      "56f110d347bddb053971f51f587a8040119891722c7a6473c067e1d05a858f23"
                                      "2dcbeb2ae7efbfcf48cb7f326fdb4b6ec7340010d0c3b9975f53bd64cdeda242"))
      .property("continued", continued)
      .property("negative token",
                refused([](CaseData& data) { data.values["tokens"][3] = -1; }, "tokens: expected token ids >= 0, given -1 at 3"))
      .property("blocks of 0",
                refused([](CaseData& data) { data.scalars["block_size"] = 0; }, "block_size: expected a number >= 1, given 0"))
      .property("too many hashes",
                refused([](CaseData& data) { data.scalars["block_size"] = 3; }, "hashes: expected shape [tokens / block_size 2"));
  cases.add("block-hash.chain", "less than a block")
      .input("parent", {32}, Fill::integers(0, 256), DType::u8)
      .input("tokens", {15}, Fill::integers(0, 1000), DType::i32)
      .output("hashes", {0, 32}, DType::u8)
      .integer("block_size", 16);

  cases.add("block-hash.chain", "32768 tokens in blocks of 16")
      .input("parent", {32}, Fill::constant(0), DType::u8)
      .input("tokens", {32768}, Fill::integers(0, 150000), DType::i32)
      .output("hashes", {2048, 32}, DType::u8)
      .integer("block_size", 16)
      .bench(0, 4 * 32768);
}

}  // namespace trilithon::block_hash
