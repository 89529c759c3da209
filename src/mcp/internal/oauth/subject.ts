/** One server that is signed in to: its configuration, its records, and the words of its failures. */
import * as Effect from "effect/Effect"
import type { CredentialStore } from "../../../stores/CredentialStore.ts"
import type { Redirect } from "../../../support/http/redirect.ts"
import { defined } from "../../../support/json/defined.ts"
import type { Proofs } from "../../../support/oauth/keys.ts"
import type { Reason } from "../../../support/oauth/reason.ts"
import { proofsOf } from "../../../support/oauth/requests.ts"
import { reveal } from "../../../support/store/redacted.ts"
import type { HttpServer, OAuth } from "../../McpConfig.ts"
import { McpError } from "../../McpError.ts"
import { wordsOf } from "../errors.ts"
import type { Assertion } from "./assertion.ts"
import * as Kept from "./kept.ts"

/** The page that a person opens, with the code to type in there when no browser can come back. */
export interface Page {
  readonly server: string
  readonly url: string
  readonly origin: string
  readonly userCode?: string
}

/** The options that all servers share. */
export interface Around {
  readonly credentials: CredentialStore["Service"]
  readonly tenant: string
  /** Without it, the person types a code in on another device. */
  readonly redirect: Redirect | undefined
  readonly open: (page: Page) => Effect.Effect<void>
  readonly clientName: string
  readonly clientMetadataUrl: string | undefined
  readonly assertion: Assertion | undefined
}

/** A server, with everything that its sign-ins share. */
export interface Subject {
  readonly name: string
  readonly url: string
  readonly oauth: OAuth
  readonly around: Around
  readonly records: ReturnType<typeof Kept.make>
  /** The proof of the key that tokens are bound to. */
  readonly proofs: Effect.Effect<Proofs, McpError>
  readonly fail: (words: string, cause?: unknown) => McpError
}

/** Makes the error of a server from the reason of an OAuth request. */
export const errorOf = ({ fail }: Pick<Subject, "fail">, reason: Reason | McpError): McpError => {
  if (reason instanceof McpError) return reason
  switch (reason._tag) {
    case "Declined":
      return fail("the sign-in was refused: access_denied")
    case "Expired":
      return fail(`nobody typed the code in within ${reason.seconds} seconds`)
    case "Refused": {
      if (reason.error === "invalid_scope") return fail("it does not give the scopes that it asks for")
      const description = reason.description === undefined ? "" : ` (it says: ${JSON.stringify(reason.description)})`
      return fail(`it could not be signed in to: ${reason.error}${description}`)
    }
    case "InvalidResponse":
    case "NotConnected":
    case "Unavailable":
    case "Unsupported":
      return fail(`it could not be signed in to: ${reason.problem}`)
  }
}

/** Makes the subject of a server. */
export const make = Effect.fnUntraced(function* (
  around: Around,
  { config, name }: { readonly name: string; readonly config: HttpServer }
) {
  const url = reveal(config.url)
  const fail = (words: string, cause?: unknown): McpError =>
    new McpError(
      defined({ server: name, reason: "Unauthorized", message: `the MCP server "${name}": ${words}`, cause })
    )
  const onError = (error: unknown) => fail(`it could not be signed in to: ${wordsOf(error)}`, error)
  const records = Kept.make(around.credentials, around.tenant, url, onError)
  const proofs = yield* Effect.cached(
    Effect.gen(function* () {
      const key = yield* records.key.get
      const proofSet = yield* Effect.mapError(proofsOf(key), (reason) => errorOf({ fail }, reason))
      if (key === undefined) yield* records.key.set(proofSet.pair)
      return proofSet.proofs
    })
  )
  const subject: Subject = { name, url, oauth: config.oauth ?? {}, around, records, proofs, fail }
  return subject
})
