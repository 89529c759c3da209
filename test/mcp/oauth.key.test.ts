/** The key of a client, as settings hold it. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { knownClient } from "../../src/mcp/internal/oauth/client.ts"

it.effect("the key of a client may be PEM, base64 or base64url, with or without padding", () =>
  Effect.gen(function* () {
    const pair = yield* Effect.promise(() =>
      crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign"])
    )
    const der = Buffer.from(yield* Effect.promise(() => crypto.subtle.exportKey("pkcs8", pair.privateKey)))
    const base64 = der.toString("base64")
    const keys = [
      `-----BEGIN PRIVATE KEY-----\n${base64.replaceAll(/.{64}/g, "$&\n")}\n-----END PRIVATE KEY-----\n`,
      base64,
      base64.replaceAll("=", ""),
      der.toString("base64url")
    ]
    for (const privateKey of [...keys, "no key"]) {
      const fail = (problem: string) => problem
      const place: object = { server: { issuer: "https://a.test" } }
      const subject: object = { oauth: { clientId: "me", privateKey }, fail }
      const result = yield* Effect.result(
        knownClient(subject as Parameters<typeof knownClient>[0], place as Parameters<typeof knownClient>[1])
      )
      assert.strictEqual(result._tag, privateKey === "no key" ? "Failure" : "Success", privateKey)
    }
  })
)
