/** Calls tools, and serves a server's messages and questions during the calls. */
import type {
  CallToolResult,
  CreateMessageRequest,
  CreateMessageResult,
  CreateMessageResultWithTools,
  ElicitRequest,
  ElicitResult,
  Progress
} from "@modelcontextprotocol/client"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import type { McpError } from "../../McpError.ts"
import * as Errors from "../errors.ts"
import type { Send } from "./send.ts"

/** A message of a server in the middle of a call. */
export type Inbound =
  | {
      readonly _tag: "Elicit"
      readonly params: ElicitRequest["params"]
      readonly answer: Deferred.Deferred<ElicitResult, string>
    }
  | {
      readonly _tag: "Sample"
      readonly params: CreateMessageRequest["params"]
      readonly answer: Deferred.Deferred<CreateMessageResult | CreateMessageResultWithTools, string>
    }
  | { readonly _tag: "Progress"; readonly progress: Progress }
  | { readonly _tag: "Log"; readonly level: string; readonly logger: string | undefined; readonly data: unknown }

/** A call that is open. `owner` is the run that it belongs to. */
export interface OpenCall {
  readonly owner: string
  readonly tell: (inbound: Inbound) => void
}

/** A call has that many words on its progress and lines of its log at most. */
const mostWords = 1_000

/** A call may ask so often: questions to a person, and requests to the model. */
const mostQuestions = 100

const isWord = ({ _tag }: Inbound): boolean => _tag === "Progress" || _tag === "Log"

const givenUp = "that was refused, or the call was given up"

/** Answers a question that nobody will look at any more. */
const abandon = (inbound: Inbound): void => {
  if (inbound._tag === "Elicit") Deferred.doneUnsafe(inbound.answer, Exit.fail(givenUp))
  else if (inbound._tag === "Sample") Deferred.doneUnsafe(inbound.answer, Exit.fail(givenUp))
}

const defaultTimeout = 300_000

/** The time that the client itself would wait; ours ends first. */
const never = 2 ** 31 - 1

/** The events of a call, in their order, for the one fiber that makes it: no other runs as long as nobody asks. */
const mailbox = <A, E>() => {
  let inbounds: Array<Inbound> = []
  let position = 0
  let words = mostWords
  let end: Exit.Exit<A, E> | undefined
  let isUrgent = false
  let wake: (() => void) | undefined
  const notify = (): void => {
    const resume = wake
    wake = undefined
    resume?.()
  }
  const news = Effect.callback<void>((resume) => {
    wake = () => resume(Effect.void)
    return Effect.sync(() => {
      wake = undefined
    })
  })
  const take = (): Inbound | undefined => {
    const next = isUrgent ? undefined : inbounds[position++]
    if (next === undefined && !isUrgent) {
      inbounds = []
      position = 0
    }
    return next
  }
  return {
    tell: (inbound: Inbound): void => {
      if (isWord(inbound) && words-- <= 0) return
      inbounds.push(inbound)
      notify()
    },
    /** The end that the server gave it comes after all that it said, any other at once. */
    finish: (exit: Exit.Exit<A, E>, urgent: boolean): void => {
      if (end !== undefined) return
      end = exit
      isUrgent = urgent
      notify()
    },
    /** Serves messages until the end. */
    attend: <E2, R>(serve: (inbound: Inbound) => Effect.Effect<unknown, E2, R>): Effect.Effect<A, E | E2, R> =>
      Effect.suspend(function next(): Effect.Effect<A, E | E2, R> {
        const inbound = take()
        if (inbound !== undefined) return Effect.flatMap(serve(inbound), () => Effect.suspend(next))
        return end ?? Effect.flatMap(news, () => Effect.suspend(next))
      }),
    close: (): void => inbounds.slice(position).forEach(abandon)
  }
}

/** The time that a call may take in all, without that in which a person or the model is asked. */
const defaultMost = 3_600_000

/** An open call, as it is watched. `deadline` is the time at which it is given up, `isBusy` while nothing counts. */
interface WatchedCall {
  readonly deadline: () => number
  readonly isBusy: () => boolean
  readonly giveUp: () => void
}

/** Gives up calls without a sign of life. One fiber for all of a connection: that costs a call nothing. */
const watch = (watched: ReadonlySet<WatchedCall>, some: Latch.Latch, limit: number) =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    while (true) {
      if (watched.size === 0) some.closeUnsafe()
      yield* some.await
      const now = clock.currentTimeMillisUnsafe()
      let next = now + limit
      for (const call of watched) {
        const deadline = call.deadline()
        if (call.isBusy()) continue
        if (deadline <= now) call.giveUp()
        else next = Math.min(next, deadline)
      }
      yield* Effect.sleep(next - now)
    }
  })

/** Connection that calls are made by. */
interface Line {
  readonly server: string
  readonly callTimeout: number | undefined
  readonly maxCallTime: number | undefined
  readonly send: Send
  readonly open: Set<OpenCall>
  readonly failure: (error: unknown) => McpError
}

/** Makes a call of a tool of a connection. */
export type Call = <E, R>(
  name: string,
  args: { readonly [key: string]: unknown },
  owner: string,
  serve: (inbound: Inbound) => Effect.Effect<void, E, R>
) => Effect.Effect<CallToolResult, McpError | E, R>

/**
 * Makes the caller of tools. It serves a server's messages and questions in the fiber of the call: messages in order,
 * questions in parallel.
 */
export const make = ({
  callTimeout,
  failure,
  maxCallTime,
  open,
  send,
  server
}: Line): Effect.Effect<Call, never, Scope.Scope> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const scope = yield* Effect.scope
    const limit = callTimeout ?? defaultTimeout
    const most = Math.max(limit, maxCallTime ?? defaultMost)
    const watched = new Set<WatchedCall>()
    const some = Latch.makeUnsafe(false)
    yield* Effect.forkScoped(watch(watched, some, limit))
    return <E, R>(
      name: string,
      args: { readonly [key: string]: unknown },
      owner: string,
      serve: (inbound: Inbound) => Effect.Effect<void, E, R>
    ) =>
      Effect.suspend(() => {
        const box = mailbox<CallToolResult, McpError | E>()
        const aborted = new AbortController()
        let since = clock.currentTimeMillisUnsafe()
        let end = since + most
        let asking = 0
        let busy = 0
        let isOver = false
        const answers: Array<Fiber.Fiber<void, E>> = []
        let questions = 0
        const tell = (inbound: Inbound): void => {
          since = clock.currentTimeMillisUnsafe()
          if (!isWord(inbound) && ++questions > mostQuestions) {
            abandon(inbound)
            box.finish(
              Exit.fail(Errors.tooMany(server, `a call of "${name}" asked more than ${mostQuestions} times`)),
              true
            )
          } else box.tell(inbound)
        }
        const call: OpenCall & WatchedCall = {
          owner,
          tell,
          deadline: () => Math.min(since + limit, end),
          isBusy: () => busy > 0,
          giveUp: () => {
            const error =
              end <= since + limit
                ? Errors.tooSlow(server, most, `a call of "${name}"`)
                : Errors.tooSlow(server, limit, `a call of "${name}" without a sign of life`)
            box.finish(Exit.fail(error), true)
          }
        }
        const answer = (inbound: Inbound) =>
          Effect.suspend(() => {
            if (busy++ === 0) asking = clock.currentTimeMillisUnsafe()
            return serve(inbound)
          }).pipe(
            Effect.onError((cause) => Effect.sync(() => box.finish(Exit.failCause(cause), true))),
            Effect.ensuring(
              Effect.sync(() => {
                since = clock.currentTimeMillisUnsafe()
                if (--busy === 0) end += since - asking
              })
            ),
            Effect.forkIn(scope),
            Effect.map((fiber) => answers.push(fiber))
          )
        const over = (exit: Exit.Exit<CallToolResult, McpError>): void => {
          isOver = true
          box.finish(exit, false)
        }
        const ask = Effect.sync(() => {
          open.add(call)
          watched.add(call)
          some.openUnsafe()
          void send(name, args, {
            signal: aborted.signal,
            timeout: never,
            onprogress: (progress) => tell({ _tag: "Progress", progress })
          }).then(
            (result) => over(Exit.succeed(result)),
            (error: unknown) => over(Exit.fail(failure(error)))
          )
        })
        const close = Effect.suspend(() => {
          open.delete(call)
          watched.delete(call)
          box.close()
          if (!isOver) aborted.abort("the call was given up")
          return answers.length === 0 ? Effect.void : Fiber.interruptAll(answers)
        })
        return ask.pipe(
          Effect.andThen(box.attend((inbound) => (isWord(inbound) ? serve(inbound) : answer(inbound)))),
          Effect.ensuring(close)
        )
      })
  })
