// A check of a plan: one question about the evidence of a run, with its options typed and complete. It is read, and
// refused if it is wrong, when the plan is made and when plan.json is read. Each type of check is one file in
// verify/checks/ and one line in verify/checks/all.h; docs/extend/add-a-check.md shows how to add one.
//
// As JSON: {"type": TYPE, ...} with the options of its type, and perhaps a "name", shown to people, and a "cell"
// [row, column] when it is a place in a table.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/json_fields.h"
#include "verify/evidence.h"
#include "verify/verdict.h"

namespace assay {

// The options of one check, and how it answers. Stateless after construction.
class CheckBody {
 public:
  virtual ~CheckBody() = default;
  // Throws InvalidError or DataError when evidence is missing or damaged: the verdict is Invalid then.
  virtual Verdict judge(const Evidence& evidence) const = 0;
  // Writes what a later judge() needs of large files, so that they may go. Throws like judge().
  virtual void keep_evidence(const Evidence& /*evidence*/) const {}
};

// One line of the registry.
struct CheckType {
  const char* name;
  // Reads the options; whoever calls looks for others that are not known. Throws DataError.
  std::unique_ptr<const CheckBody> (*parse)(JsonFields& options);
};
const std::vector<CheckType>& check_registry();
std::vector<std::string> check_types();

class Check {
 public:
  // Throws DataError naming the check and the option: an unknown type, an option that is missing, wrong or not known.
  static Check parse(const Json& json, const std::vector<CheckType>& types = check_registry());

  const std::string& type() const { return type_; }
  const Json& to_json() const { return json_; }

  // Never throws for evidence that is missing or damaged: that is a verdict, Invalid, with the reason.
  Verdict judge(const Evidence& evidence) const;
  // Evidence that is missing or damaged is left to the verdict. Throws InfrastructureError.
  void keep_evidence(const Evidence& evidence) const;

  bool operator==(const Check& other) const { return json_ == other.json_; }

 private:
  Check() = default;

  Json json_;  // as it was read, so that a plan keeps its hash
  std::string type_;
  std::string name_;
  std::vector<std::string> cell_;
  std::shared_ptr<const CheckBody> body_;
};

}  // namespace assay
