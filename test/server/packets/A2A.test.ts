import { Role, type SendMessageRequest, type StreamResponse, type Task, TaskState } from "@a2a-js/sdk"
/** The official client of A2A against the server. */
import {
  ClientFactory,
  ClientFactoryOptions,
  createAuthenticatingFetchWithRetry,
  JsonRpcTransportFactory
} from "@a2a-js/sdk/client"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { A2A } from "effect-deepagents/server"
import * as fc from "fast-check"
import { scaled } from "../../scale.ts"
import { ask, serve } from "../door.ts"
import { play, services, serverOf, story, type Story, transcript } from "./story.ts"

const asking: Story = {
  rounds: [{ calls: ["add", "pay"], reasoning: true, text: true, restarts: false }],
  end: "text",
  decisions: [true]
}

const clientOf = (url: string, token: string) => {
  const headers = () => Promise.resolve({ authorization: `Bearer ${token}` })
  const shouldRetryWithHeaders = () => Promise.resolve(undefined)
  const fetchImpl = createAuthenticatingFetchWithRetry(fetch, { headers, shouldRetryWithHeaders })
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    transports: [new JsonRpcTransportFactory({ fetchImpl })]
  })
  return new ClientFactory(options).createFromUrl(url)
}

const say = (
  text: string,
  more: { readonly taskId?: string; readonly contextId?: string } = {}
): SendMessageRequest => ({
  tenant: "",
  metadata: undefined,
  configuration: undefined,
  message: {
    messageId: crypto.randomUUID(),
    contextId: more.contextId ?? "",
    taskId: more.taskId ?? "",
    role: Role.ROLE_USER,
    parts: [{ content: { $case: "text", value: text }, metadata: undefined, filename: "", mediaType: "text/plain" }],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: []
  }
})

const taskIn = (result: unknown): Task => {
  if (typeof result !== "object" || result === null || !("artifacts" in result)) return assert.fail("no task")
  const task: Task = Object.assign(
    { id: "", contextId: "", status: undefined, artifacts: [], history: [], metadata: undefined },
    result
  )
  return task
}
const textsOf = ({ artifacts }: Pick<Task, "artifacts">) =>
  artifacts.map(({ parts }) => parts.map(({ content }) => (content?.$case === "text" ? content.value : "")).join(""))

/** The artifacts and the last state of a stream, as a client keeps them. */
const rebuild = (packets: Iterable<A2A.Packet>) => {
  const artifacts = new Map<string, string>()
  let state: unknown
  for (const packet of packets) {
    const {
      artifactUpdate,
      statusUpdate,
      task
    }: {
      artifactUpdate?: { artifact: { artifactId: string; parts: Array<{ text: string }> }; append: boolean }
      statusUpdate?: { status: { state: string } }
      task?: { status: { state: string } }
    } = JSON.parse(JSON.stringify(packet))
    state = statusUpdate?.status.state ?? task?.status.state ?? state
    if (artifactUpdate === undefined) continue
    const { append, artifact } = artifactUpdate
    artifacts.set(
      artifact.artifactId,
      (append ? (artifacts.get(artifact.artifactId) ?? "") : "") + (artifact.parts[0]?.text ?? "")
    )
  }
  return { text: [...artifacts.values()].join(""), state }
}

describe("A2A", () => {
  it.live(
    "rebuilds the text and the state of a run from its packets, and the same ones from the store",
    () =>
      Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(story, (one) =>
            Effect.gen(function* () {
              for (const { live, stored, told } of yield* play(one)) {
                const encode = (events: typeof live) =>
                  Stream.runCollect(
                    A2A.encode({ taskId: "t", contextId: "c" })(Stream.rechunk(Stream.fromIterable(events), 5))
                  )
                const [seen, later] = [rebuild(yield* encode([...told, ...live])), rebuild(yield* encode(stored))]
                assert.strictEqual(later.text, transcript(stored).text)
                assert.strictEqual(seen.state, later.state)
                if (one.end === "text" || one.end === "picture") assert.strictEqual(seen.text, later.text)
              }
            }).pipe(Effect.provide(Layer.fresh(services)), Effect.scoped, Effect.runPromise)
          ),
          { numRuns: scaled(25) }
        )
      ),
    60_000
  )

  it.live("is driven by the client: the card, a task, its question, the answer by a message, lists", () =>
    Effect.gen(function* () {
      const url = yield* serve(serverOf(asking), { protocols: ["a2a"] })
      yield* Effect.promise(async () => {
        const client = await clientOf(url, "token-of-ada")
        const asked = taskIn(await client.sendMessage(say("go")))
        assert.strictEqual(asked.status?.state, TaskState.TASK_STATE_INPUT_REQUIRED)
        assert.include(JSON.stringify(asked.status?.message?.parts), "pay")
        assert.deepStrictEqual(textsOf(asked), ["This is round 0. "])
        const ids = { taskId: asked.id, contextId: asked.contextId }
        const parts: Array<StreamResponse> = []
        for await (const part of client.sendMessageStream(say("Approve", ids))) parts.push(part)
        assert.strictEqual(parts[0]?.payload?.$case, "task")
        const last = parts.at(-1)?.payload
        assert.strictEqual(
          last?.$case === "statusUpdate" ? last.value.status?.state : undefined,
          TaskState.TASK_STATE_COMPLETED
        )
        const done = await client.getTask({ tenant: "", id: asked.id })
        assert.deepStrictEqual(textsOf(done), ["This is round 0. ", "All is done. 🙂"])
        assert.strictEqual(done.status?.state, TaskState.TASK_STATE_COMPLETED)
        const readHistory = () => Effect.runPromise(ask(`${url}/threads/${asked.contextId}/history`))
        assert.lengthOf((await readHistory()).text.match(/"paid 1"/gu) ?? [], 1)
        const next = taskIn(await client.sendMessage(say("go", { contextId: asked.contextId })))
        assert.notStrictEqual(next.id, asked.id)
        const refused = taskIn(await client.sendMessage(say("it is too much", { taskId: next.id })))
        assert.strictEqual(refused.status?.state, TaskState.TASK_STATE_COMPLETED)
        const history = (await readHistory()).text
        assert.lengthOf(history.match(/"paid 1"/gu) ?? [], 1)
        assert.include(history, "it is too much")
        const list = {
          tenant: "",
          contextId: asked.contextId,
          status: 0,
          pageToken: "",
          statusTimestampAfter: undefined
        }
        const { tasks } = await client.listTasks(list)
        assert.deepStrictEqual(
          tasks.map(({ id }) => id),
          [next.id, asked.id]
        )
        const newer = await client.listTasks({ ...list, pageSize: 1 })
        const older = await client.listTasks({ ...list, pageSize: 1, pageToken: newer.nextPageToken })
        assert.deepStrictEqual(
          [newer, older].map((page) => [page.tasks.map(({ id }) => id), page.totalSize]),
          [
            [[next.id], 2],
            [[asked.id], 2]
          ]
        )
        assert.strictEqual(older.nextPageToken, "")
        const failed = await client.listTasks({ ...list, status: TaskState.TASK_STATE_FAILED })
        assert.deepStrictEqual([failed.tasks, failed.totalSize], [[], 0])
        await client.sendMessage(say("go"))
        const all = await client.listTasks({ ...list, contextId: "", pageSize: 1 })
        assert.deepStrictEqual([all.tasks.length, all.totalSize], [1, 2])
        for (const wrong of [
          () => client.cancelTask({ tenant: "", id: asked.id, metadata: undefined }),
          () => client.sendMessage(say("more", { taskId: asked.id })),
          () => client.getTask({ tenant: "", id: "bm8.bm8" })
        ]) {
          assert.match(await wrong().then(String, String), /not at work|waits for nothing|no such task/u)
        }
        const other = await clientOf(url, "token-of-eve")
        assert.match(await other.getTask({ tenant: "", id: asked.id }).then(String, String), /no such task/u)
      })
    }).pipe(Effect.provide(Layer.fresh(services)))
  )

  it.live("streams to a client that comes again, and cancels", () =>
    Effect.gen(function* () {
      const url = yield* serve(serverOf({ ...asking, rounds: [], end: "interruption" }), { protocols: ["a2a"] })
      yield* Effect.promise(async () => {
        const client = await clientOf(url, "token-of-ada")
        const started = taskIn(
          await client.sendMessage({
            ...say("go"),
            configuration: { acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately: true }
          })
        )
        assert.strictEqual(started.status?.state, TaskState.TASK_STATE_WORKING)
        const states: Array<unknown> = []
        for await (const { payload } of client.resubscribeTask({ tenant: "", id: started.id })) {
          if (payload?.$case === "artifactUpdate" && JSON.stringify(payload.value).includes("still")) {
            const ended = await client.cancelTask({ tenant: "", id: started.id, metadata: undefined })
            assert.strictEqual(ended.status?.state, TaskState.TASK_STATE_CANCELED)
          }
          if (payload?.$case === "statusUpdate") states.push(payload.value.status?.state)
        }
        assert.deepStrictEqual(states, [TaskState.TASK_STATE_CANCELED])
      })
    }).pipe(Effect.provide(Layer.fresh(services)))
  )
})
