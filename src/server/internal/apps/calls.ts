/** Calls of interfaces (MCP Apps): runs of a thread whose first turn is the call, in place of a turn of the model. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type ModelRequest, type ModelSession, type Service, turnPurpose } from "../../../core/ChatModel.ts"
import { JsonObject } from "../../../core/Json.ts"
import { ai, type Message } from "../../../core/Message.ts"

/** A call of an interface: its server, the name of the tool for models, and the arguments. */
export const AppCall = Schema.Struct({ server: Schema.String, name: Schema.String, arguments: JsonObject })
export interface AppCall extends Schema.Schema.Type<typeof AppCall> {}

const prefix = "app:"

/** The source of messages that stand for calls of interfaces. */
export const sourceOf = ({ server }: AppCall): string => `${prefix}${server}`

/** The id of the call of an input. */
const callIdOf = (inputId: string): string => `${prefix}${inputId}`

/** The server whose interface a message stands for. */
export const serverOf = (message: Message | undefined): string | undefined =>
  message?.role === "human" && message.source?.startsWith(prefix) === true
    ? message.source.slice(prefix.length)
    : undefined

/** The place of the last input: the words of a person, or a call of an interface. */
export const lastInput = (messages: ReadonlyArray<Message>): number =>
  messages.findLastIndex(
    (message) => message.role === "human" && (message.source === undefined || serverOf(message) !== undefined)
  )

const endText = "The app has the result of its call."

/** The turn of a call, and the turn behind its result. All other requests are for the model. */
const turnOf = (request: ModelRequest, call: AppCall | undefined, inputId: string) => {
  const at = lastInput(request.messages)
  if (request.purpose !== turnPurpose || serverOf(request.messages[at]) === undefined) return undefined
  const isFirst = !request.messages.slice(at + 1).some(({ role }) => role === "ai")
  if (!isFirst || call === undefined) return ai(endText, { model: "app" })
  const { arguments: args, name } = call
  return ai("", { model: "app", toolCalls: [{ id: callIdOf(inputId), name, arguments: args }] })
}

/** Makes the model of a run that an interface began. It asks the real one for nothing but words of a person. */
export const callingModel = (real: Service, call: AppCall | undefined, inputId: string): Service => ({
  ...real,
  makeSession: Effect.gen(function* () {
    const scope = yield* Effect.scope
    let session: ModelSession | undefined
    const opened = Effect.suspend(() =>
      session === undefined
        ? Effect.tap(Effect.provideService(real.makeSession, Scope.Scope, scope), (fresh) =>
            Effect.sync(() => {
              session = fresh
            })
          )
        : Effect.succeed(session)
    )
    return {
      nextTurn: (request: ModelRequest) => {
        const message = turnOf(request, call, inputId)
        return message === undefined
          ? Stream.unwrap(Effect.map(opened, ({ nextTurn }) => nextTurn(request)))
          : Stream.succeed({ _tag: "TurnDone" as const, message })
      }
    }
  })
})
