/** Errors of the system as reasons, for those that no test can cause on every machine. */
import { assert, describe, it } from "@effect/vitest"
import { fromSystem, toBackendError } from "../../../../src/backends/internal/local/failure.ts"

const errors: ReadonlyArray<readonly [code: string, tag: string, hint: string]> = [
  ["ENOENT", "NotFound", ""],
  ["EEXIST", "AlreadyExists", ""],
  ["ENOTDIR", "NotDirectory", ""],
  ["ELOOP", "OutsideRoot", ""],
  ["EACCES", "PermissionDenied", ""],
  ["EPERM", "PermissionDenied", ""],
  ["EROFS", "PermissionDenied", "read-only"],
  ["ENAMETOOLONG", "InvalidPath", "too long"],
  ["EXDEV", "Unsupported", "different file systems"],
  ["ENXIO", "Unsupported", "pipe"],
  ["ENOSPC", "Unavailable", "the disk is full"],
  ["EDQUOT", "Unavailable", "quota"],
  ["EMFILE", "Unavailable", "too many open files"],
  ["ENFILE", "Unavailable", "too many open files"],
  ["EIO", "Unavailable", "disk"],
  ["ESTRANGE", "Unavailable", "ESTRANGE"]
]

describe("what the system says", () => {
  for (const [code, tag, hint] of errors) {
    it(`${code} is ${tag}, and no path of the machine is told`, () => {
      const cause = Object.assign(new Error(`${code}: open '/home/ada/secret'`), { code, path: "/home/ada/secret" })
      const error = toBackendError("read", "/notes.md")(fromSystem(cause))
      assert.deepStrictEqual([error.operation, error.path, error.reason._tag], ["read", "/notes.md", tag])
      assert.include(error.message, hint)
      assert.notInclude(error.message, "ada")
      assert.strictEqual(error.cause, cause)
    })
  }
})
