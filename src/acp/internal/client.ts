/** The client of a connection, as effects. */
import type * as Acp from "@agentclientprotocol/sdk"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Form } from "../../view/Form.ts"
import { AcpError } from "../AcpError.ts"
import { decodeAnswer, messageOf, optional, textUpTo } from "./decode.ts"

/** The answers that the server reads, with the fields that it reads. */
const answers = {
  "session/request_permission": Schema.Struct({
    outcome: Schema.Union([
      Schema.Struct({ outcome: Schema.Literal("cancelled") }),
      Schema.Struct({ outcome: Schema.Literal("selected"), optionId: textUpTo(1_000) })
    ])
  }),
  "fs/read_text_file": Schema.Struct({ content: Schema.String }),
  "fs/write_text_file": Schema.Unknown,
  "terminal/create": Schema.Struct({ terminalId: textUpTo(1_000) }),
  "terminal/output": Schema.Struct({ output: Schema.String, truncated: Schema.Boolean }),
  "terminal/wait_for_exit": Schema.Struct({ exitCode: optional(Schema.Finite), signal: optional(Schema.String) }),
  "terminal/kill": Schema.Unknown,
  "terminal/release": Schema.Unknown,
  "elicitation/create": Schema.Struct({
    action: Schema.String,
    content: optional(Schema.Record(Schema.String, Schema.Json))
  })
} as const

type Answers = typeof answers

/** The client: its abilities, questions to it, and notes to it. */
export interface Client {
  readonly can: () => Acp.ClientCapabilities
  /** Asks the client. An answer that violates the protocol fails with `Invalid`. Interruption withdraws the question. */
  readonly request: <M extends keyof Answers & Acp.ClientRequestMethod>(
    method: M,
    params: Acp.ClientRequestParamsByMethod[M]
  ) => Effect.Effect<Answers[M]["Type"], AcpError>
  /** Shows a form to the person. */
  readonly elicit: (
    sessionId: string,
    toolCallId: string,
    form: Form
  ) => Effect.Effect<Answers["elicitation/create"]["Type"], AcpError>
  readonly update: (sessionId: string, update: Acp.SessionUpdate) => Effect.Effect<void>
}

export const makeClient = (context: Acp.AgentContext, can: Client["can"]): Client => {
  const ask = <M extends keyof Answers>(method: M, params: unknown): Effect.Effect<Answers[M]["Type"], AcpError> =>
    Effect.tryPromise({
      try: (cancellationSignal): Promise<unknown> =>
        context.request<unknown, unknown>(method, params, { cancellationSignal, stopWaitingOnCancel: true }),
      catch: (cause) => new AcpError({ reason: "Refused", method, detail: messageOf(cause) })
    }).pipe(Effect.flatMap(decodeAnswer<Answers[M]["Type"]>(method, answers[method])))
  return {
    can,
    request: ask,
    elicit: (sessionId, toolCallId, form) =>
      ask("elicitation/create", { mode: "form", sessionId, toolCallId, ...form }),
    // A client that is gone ends the connection, and with it the run.
    update: (sessionId, update) =>
      Effect.ignore(Effect.tryPromise(() => context.notify("session/update", { sessionId, update })))
  }
}
