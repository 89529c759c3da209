import type { Effect } from "effect"
/** The types of connectors: their services, and the tools that need a decision. */
import type { Approval, Tool } from "effect-deepagents"
import { Connection, OpenApiTools, Slack } from "effect-deepagents/connect"
import type { CredentialStore } from "effect-deepagents/stores"
import type { HttpClient } from "effect/http"

type Equal<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false
type IsTrue<T extends true> = T

const stored = Slack.tools({ connection: Connection.stored({ service: "Slack", namespace: "a" }) })
const fixed = OpenApiTools.make({})

type Store = CredentialStore.CredentialStore
type Reading = Tool.Services<(typeof stored)[0]>
type Writing = Tool.Services<(typeof stored)[5]>
type Success<T> = T extends Effect.Effect<infer A, unknown, unknown> ? A : never

export type Checks = [
  IsTrue<Equal<Reading, HttpClient.HttpClient | Store>>,
  IsTrue<Equal<Writing, HttpClient.HttpClient | Store | Approval.Approvals>>,
  IsTrue<Equal<Tool.ServicesIn<(typeof stored)[5], "suspends">, HttpClient.HttpClient | Store>>,
  IsTrue<Equal<Success<typeof fixed>["tools"][number], OpenApiTools.OperationTool<never>>>
]
