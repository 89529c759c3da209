/** The chat as lines, for pipes and screen readers: each input and each answer is one line. */
import { createInterface } from "node:readline"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as Agent from "../../../core/Agent.ts"
import type { AgentEvent } from "../../../core/AgentEvent.ts"
import * as Approval from "../../../core/Approval.ts"
import { Backend } from "../../../core/Backend.ts"
import * as Checkpoint from "../../../core/Checkpoint.ts"
import { Journal } from "../../../core/Journal.ts"
import * as Message from "../../../core/Message.ts"
import { SessionStore } from "../../../core/SessionStore.ts"
import { loadThread, makeJournal } from "../../../sessions/journal.ts"
import { cleanLine } from "../../../support/text/clean.ts"
import { cut } from "../../../support/text/text.ts"
import * as View from "../../../view/View.ts"
import { automatic } from "../approvals/desk.ts"
import * as Dialog from "../approvals/dialog.ts"
import { makePermits } from "../approvals/permits.ts"
import { previewOf } from "../approvals/preview.ts"
import { withFiles } from "../chat/attach.ts"
import { recorded } from "../chat/files/recorded.ts"
import type { ChatEnd, Options } from "../chat/options.ts"
import { decidedWords, questionOf } from "../chat/remember.ts"
import { makeRunCommand } from "../chat/runCommand.ts"
import { styleOf } from "../render/style.ts"
import { makePrinter, print } from "./printer.ts"
import { makeQuestions } from "./questions.ts"

/** Reads lines of the standard input. Returns `undefined` at its end. */
const lines = Effect.gen(function* () {
  const queue = yield* Queue.unbounded<string | undefined>()
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      const reader = createInterface({ input: process.stdin, terminal: false })
      reader.on("line", (line) => Queue.offerUnsafe(queue, line))
      reader.on("close", () => Queue.offerUnsafe(queue, undefined))
      return reader
    }),
    (reader) => Effect.sync(() => reader.close())
  )
  let isOver = false
  return Effect.suspend(() =>
    isOver
      ? Effect.undefined
      : Effect.map(Queue.take(queue), (line) => {
          isOver = line === undefined
          return line
        })
  )
})

/** Leaves out the note about a partial answer: the stored conversation has shown it. */
const withoutLoaded = <E, R>(events: Stream.Stream<AgentEvent, E, R>): Stream.Stream<AgentEvent, E, R> =>
  Stream.filter(events, ({ _tag }) => _tag !== "CheckpointLoaded")

const write = (text: string): void => {
  process.stdout.write(text)
}
const say = (line: string): void => write(`${line}\n`)

const makeStandardPrinter = (colours: boolean) =>
  makePrinter({
    write,
    // A file or a pipe gets the conversation, and the person the reason for the delay.
    tell: (text) => void (process.stdout.isTTY === true ? process.stdout : process.stderr).write(text),
    columns: process.stdout.columns ?? 100,
    colours
  })

/** Chats by lines until the input ends or `/quit`. */
export const plain = Effect.fnUntraced(function* <E, R>(options: Options<E, R> & { readonly colours: boolean }) {
  const store = yield* SessionStore
  const backend = yield* Backend
  const readLine = yield* lines
  const style = styleOf(options.colours)
  const printer = makeStandardPrinter(options.colours)
  const permits = options.permits ?? makePermits(options.folder ?? process.cwd(), [])
  let learned = permits.kept

  const { approve, fill, number } = makeQuestions({
    readLine,
    write,
    permits,
    onLearned: (one) => {
      learned = [...learned, one]
      options.onLearned?.(learned)
    }
  })

  // Below the "^C" of a terminal.
  yield* Effect.addFinalizer((exit) =>
    Effect.sync(() => {
      const resumeLine = options.resumeCommand?.(options.threadId)
      if (resumeLine !== undefined) say(`${Exit.isSuccess(exit) ? "" : "\n"}${resumeLine}`)
    })
  )
  const lock = yield* Semaphore.make(1)
  const decide = (request: Approval.Request): Effect.Effect<Approval.Decision> =>
    lock.withPermit(
      Effect.gen(function* () {
        const decided = automatic(request, options.mode ?? "ask", permits, learned, options.isAllowed)
        if (decided !== undefined) return decided
        options.onWait?.(request)
        const preview = yield* Effect.orElseSucceed(previewOf(backend, request), () => undefined)
        for (const line of Dialog.announcement(request, style, preview)) say(line)
        const decision = yield* Dialog.isForm(request) ? fill(request) : approve(request)
        return options.principal === undefined
          ? decision
          : Approval.decidedBy(decision, request, { by: options.principal })
      })
    )

  options.remembering?.setPlan(() => options.mode === "plan")
  /** What the model reads with the next message. */
  let notice = ""
  let putOff = ""
  const askMemory = Effect.gen(function* () {
    const changes = yield* Effect.orElseSucceed(options.remembering?.pending ?? Effect.succeed([]), () => [])
    const key = JSON.stringify(changes)
    if (options.remembering === undefined || changes.length === 0 || key === putOff) return
    for (const { diff, path } of changes) say(`memory: ${cleanLine(path)}\n${diff}`)
    const { items, title } = questionOf(yield* options.remembering.outside(options.threadId))
    say(title)
    const index = yield* number(items.map(({ about, label }) => `${label} (${about})`))
    const answer = index === undefined ? undefined : items[index]?.value
    if (answer !== "yes" && answer !== "no") {
      putOff = key
      return
    }
    const settled = yield* Effect.result(
      Effect.forEach(changes, ({ settle }) => settle(answer === "yes"), { discard: true })
    )
    notice = Result.isFailure(settled) ? "" : `(${decidedWords(changes, answer === "yes")})`
    say(Result.isFailure(settled) ? `failed: ${settled.failure.message}` : notice)
  })

  /** `title` names the turn. Without it, a turn that a crash cut off goes on. */
  const turn = (input: Agent.Input, title?: string) =>
    Effect.scoped(
      Effect.gen(function* () {
        const hold = yield* Effect.result(options.hold?.(options.threadId) ?? Effect.void)
        if (Result.isFailure(hold)) return say(`failed: ${hold.failure.message}`)
        const exit = yield* recorded({
          checkpoints: options.checkpoints,
          store,
          threadId: options.threadId,
          title: title ?? "",
          goesOn: title === undefined,
          warn: say
        })(
          Effect.gen(function* () {
            const handle = yield* Agent.start(options.setup.agent, input, { threadId: options.threadId })
            yield* print(title === undefined ? withoutLoaded(handle.events) : handle.events, printer, say)
            return yield* Effect.exit(handle.await)
          })
        )
        if (Exit.isFailure(exit) && printer.view().runId === undefined) say(`failed: ${Cause.pretty(exit.cause)}`)
        if (Exit.isSuccess(exit)) yield* askMemory
      })
    ).pipe(
      Effect.provide(Layer.succeed(Approval.Approvals, { decide })),
      Effect.provideService(Journal, makeJournal(store, { parts: true })),
      Effect.provideService(Backend, backend)
    )

  const sendMessage = Effect.fnUntraced(function* (input: string | Message.HumanMessage) {
    const text = typeof input === "string" ? input : Message.text(input)
    const title = cut(cleanLine(text), 80)
    const metadata = { title, agent: options.setup.name, folder: options.folder ?? "" }
    yield* Effect.catchIf(
      Effect.asVoid(store.create({ threadId: options.threadId, metadata })),
      (error) => error.reason._tag === "AlreadyExists",
      () => Effect.void
    )
    const whole = notice === "" ? text : `${notice}\n\n${text}`
    notice = ""
    if (typeof input !== "string") return yield* turn(input, title)
    const { message, problems } = yield* withFiles(whole, Message.makeId(), options.folder)
    for (const problem of problems) say(problem)
    yield* turn(message, title)
  })

  const handleLine = Effect.fnUntraced(function* (line: string) {
    const [, name = "", argument = ""] = /^\/([\w:-]+)\s*([^]*)$/.exec(line) ?? []
    if (name === "") return yield* sendMessage(line)
    const commands = options.commands?.() ?? []
    const own = commands.find((one) => one.name === name)
    if (own === undefined)
      return say(`In this mode there are /quit${commands.map((one) => `, /${one.name}`).join("")}.`)
    const answer = yield* Effect.result(own.run(argument, say, makeRunCommand(decide)))
    if (answer._tag === "Failure") return say(`failed: ${answer.failure.message}`)
    if (answer.success._tag === "Send") return yield* sendMessage(answer.success.input)
    printer.parts([{ kind: "text", markdown: answer.success.markdown }])
  })

  yield* Effect.forkScoped(
    Stream.runForEach(options.notes ?? Stream.empty, (text) => Effect.sync(() => say(`! ${text}`)))
  )
  if (options.resumes === true) {
    const { checkpoint, ended } = yield* loadThread(store, options.threadId)
    const messages = checkpoint?.messages ?? []
    say(`resumed: ${options.threadId}, messages: ${messages.length}`)
    const parts = View.ofMessages(messages)
    printer.parts(parts.slice(parts.findLastIndex(({ kind }) => kind === "user") + 1))
    if (ended === undefined && checkpoint !== undefined) yield* turn(Checkpoint.resume(undefined))
  }
  if (options.first !== undefined) yield* sendMessage(options.first)
  for (;;) {
    write("> ")
    const line = (yield* readLine)?.trim()
    if (line === undefined || line === "/quit" || line === "/exit") break
    if (line !== "") yield* handleLine(line)
  }
  return { threadId: options.threadId } satisfies ChatEnd
}, Effect.scoped)
