import { execFile } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { isFull } from "../scale.ts"

/** The scenarios of the protocol's own suite for a client without authorisation, and the number of their checks. */
const scenarios = {
  initialize: 1,
  tools_call: 2,
  "elicitation-sep1034-client-defaults": 5,
  "http-custom-headers": 18,
  "sse-retry": 3,
  "request-metadata": 8,
  "sep-2322-client-request-state": 5,
  "http-standard-headers": 10,
  "http-invalid-tool-headers": 12,
  "json-schema-ref-no-deref": 1,
  "json-schema-2020-12-preservation": 9
}

/** The same of a client that signs in. */
const authorizing = {
  "auth/metadata-default": 19,
  "auth/metadata-var1": 19,
  "auth/metadata-var2": 19,
  "auth/metadata-var3": 19,
  "auth/basic-cimd": 14,
  "auth/scope-from-www-authenticate": 15,
  "auth/scope-from-scopes-supported": 15,
  "auth/scope-omitted-when-undefined": 15,
  "auth/scope-step-up": 24,
  "auth/scope-retry-limit": 10,
  "auth/token-endpoint-auth-basic": 20,
  "auth/token-endpoint-auth-post": 20,
  "auth/token-endpoint-auth-none": 20,
  "auth/pre-registration": 14,
  "auth/2025-03-26-oauth-metadata-backcompat": 13,
  "auth/2025-03-26-oauth-endpoint-fallback": 8,
  "auth/resource-mismatch": 3,
  "auth/offline-access-scope": 12,
  "auth/offline-access-not-supported": 14,
  "auth/authorization-server-migration": 27,
  "auth/iss-supported": 14,
  "auth/iss-not-advertised": 14,
  "auth/iss-supported-missing": 8,
  "auth/iss-wrong-issuer": 8,
  "auth/iss-unexpected": 8,
  "auth/iss-normalized": 8,
  "auth/metadata-issuer-mismatch": 3,
  "auth/client-credentials-basic": 9,
  "auth/client-credentials-jwt": 9,
  "auth/wif-jwt-bearer": 9,
  "auth/enterprise-managed-authorization": 10,
  "auth/dpop": 12,
  "auth/dpop-nonce": 14
}

const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

const suite = path("../../node_modules/@modelcontextprotocol/conformance/dist/index.js")

const client = `${process.execPath} --conditions=@effect-deepagents/source ${path("children/conformanceClient.ts")}`

/** Milliseconds. On a machine that does ten other things, a client that signs in took more than the suite's 30 seconds. */
const patience = 300_000

const run = (scenario: string) =>
  Effect.acquireUseRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "mcp-conformance-"))),
    (folder) =>
      Effect.callback<string>((resume) => {
        const child = execFile(
          process.execPath,
          [suite, "client", "--command", client, "--scenario", scenario, "-o", folder, "--timeout", `${patience}`],
          (_, stdout, stderr) => resume(Effect.succeed(`${stdout}${stderr}`))
        )
        return Effect.sync(() => child.kill())
      }),
    (folder) => Effect.promise(() => rm(folder, { recursive: true, force: true }))
  )

const few = ["auth/scope-step-up", "auth/client-credentials-jwt", "auth/dpop-nonce"] as const

describe("the conformance suite of the protocol", () => {
  const chosen = isFull
    ? Object.entries({ ...scenarios, ...authorizing })
    : [...Object.entries(scenarios).slice(0, 2), ...few.map((name) => [name, authorizing[name]] as const)]
  it.live.each(chosen)(
    "%s",
    ([scenario, checks]) =>
      Effect.gen(function* () {
        const output = yield* run(scenario)
        assert.match(
          /Passed: .*/u.exec(output)?.[0] ?? output.slice(-2_000),
          new RegExp(`Passed: ${checks}/${checks}, 0 failed`, "u")
        )
      }),
    patience + 10_000
  )
})
