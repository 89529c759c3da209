import { execFile } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, layer } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { serve } from "../net/servers.ts"
import { useAll } from "./conformanceClient.ts"

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

/** Milliseconds. A machine that does ten other things takes its time. */
const patience = 300_000

/** The clients of all scenarios run in this process. The program that the suite starts for each asks for one. */
const clients = serve((_, response, body) => {
  const answer = (status: number, text: string) => response.writeHead(status).end(text)
  Effect.runFork(
    Effect.matchCause(useAll(JSON.parse(body)), {
      onFailure: (cause) => answer(500, Cause.pretty(cause)),
      onSuccess: () => answer(200, "done")
    })
  )
})

/** The output of one run of the suite: a line for each scenario. */
const said = Effect.gen(function* () {
  const { url } = yield* clients
  const folder = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "mcp-conformance-"))),
    (made) => Effect.promise(() => rm(made, { recursive: true, force: true }))
  )
  const command = `${process.execPath} ${path("children/conformanceRelay.mjs")} ${url}`
  const given = [suite, "client", "--command", command, "--suite", "all", "-o", folder, "--timeout", `${patience}`]
  return yield* Effect.callback<string>((resume) => {
    const child = execFile(process.execPath, given, { maxBuffer: 2 ** 26 }, (_, stdout, stderr) =>
      resume(Effect.succeed(`${stdout}${stderr}`))
    )
    return Effect.sync(() => child.kill())
  })
})

class Said extends Context.Service<Said, string>()("test/Said") {}

layer(Layer.effect(Said, said), { timeout: patience + 10_000, excludeTestServices: true })(
  "the conformance suite of the protocol",
  (it) => {
    it.effect.each(Object.entries({ ...scenarios, ...authorizing }))("%s", ([scenario, checks]) =>
      Effect.gen(function* () {
        const output = yield* Said
        const line = output.split("\n").find((one) => one.includes(` ${scenario}: `)) ?? output.slice(-4_000)
        assert.include(line, ` ${scenario}: ${checks} passed, 0 failed`)
      })
    )
  }
)
