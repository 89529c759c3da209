import * as Array from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Pull from "effect/Pull"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { ModelRequest, ModelSession, Service, TurnPart } from "../ChatModel.ts"
import * as Content from "../Content.ts"
import type { Message } from "../Message.ts"
import { ModelError } from "../ModelError.ts"
import { priced } from "../Usage.ts"

/** What a model without vision is shown in the place of an image. */
const imagePlaceholder = "[An image was here. This model cannot see images.]"

const withoutImages = (message: Message): Message =>
  message.content.some((block) => block.type === "image")
    ? {
        ...message,
        content: message.content.map((block) => (block.type === "image" ? Content.text(imagePlaceholder) : block))
      }
    : message

/** Rewrites only what was not there at the last call: the history of a run grows at its end. */
const makeImageRemover = () => {
  let source: ReadonlyArray<Message> = []
  let view: Array<Message> = []
  return (messages: ReadonlyArray<Message>): ReadonlyArray<Message> => {
    if (messages !== source) {
      source = messages
      view = []
    }
    for (let index = view.length; index < messages.length; index++) {
      const message = messages[index]
      if (message !== undefined) view.push(withoutImages(message))
    }
    return view
  }
}

/** A stream that ends without its last part is a broken one, however much text came. */
const whole =
  (model: Service) =>
  (turn: Stream.Stream<TurnPart, ModelError>): Stream.Stream<TurnPart, ModelError> =>
    Stream.transformPull(turn, (pull) =>
      Effect.sync(() => {
        const { prices } = model
        let done = false
        const complete = Effect.suspend((): Effect.Effect<never, ModelError | Cause.Done> =>
          done ? Cause.done() : Effect.fail(incomplete(model))
        )
        const checked = Effect.map(pull, (parts) => {
          const last = parts[parts.length - 1]
          if (last?._tag !== "TurnDone") return parts
          done = true
          const { usage } = last.message
          if (usage === undefined || prices === undefined) return parts
          const message = { ...last.message, usage: priced(usage, prices) }
          return Array.map(parts, (part) => (part === last ? { ...last, message } : part))
        })
        // What a source does after its turn is done (keep the connection open, for one) is not waited for.
        return Effect.suspend(() => (done ? Cause.done() : Pull.catchDone(checked, () => complete)))
      })
    )

/** The failure of a turn that ended without its last part. */
export const incomplete = (model: Service): ModelError =>
  new ModelError({
    provider: model.provider,
    model: model.modelId,
    reason: { _tag: "BadResponse" },
    detail: "the stream ended before the turn was complete"
  })

/** Opens a session with everything around it that holds for any model. */
export const open = (model: Service): Effect.Effect<ModelSession, ModelError, Scope.Scope> =>
  Effect.map(model.makeSession, (session) => {
    const complete = whole(model)
    if (model.supportsVision) return { nextTurn: (request: ModelRequest) => complete(session.nextTurn(request)) }
    const remove = makeImageRemover()
    return {
      nextTurn: (request: ModelRequest) =>
        complete(session.nextTurn({ ...request, messages: remove(request.messages) }))
    }
  })
