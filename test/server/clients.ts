/** Clients of all protocols on one thread: each comes again until the run is over, and shows its final transcript. */
import { type Message as A2AMessage, Role, type Task, TaskState } from "@a2a-js/sdk"
import {
  ClientFactory,
  ClientFactoryOptions,
  createAuthenticatingFetchWithRetry,
  JsonRpcTransportFactory
} from "@a2a-js/sdk/client"
import { HttpAgent } from "@ag-ui/client"
import { Client as LangGraph } from "@langchain/langgraph-sdk"
import { DefaultChatTransport, readUIMessageStream, type UIMessage, type UIMessageChunk } from "ai"
import { Effect } from "effect"
import { AgentEvent, Message } from "effect-deepagents"
import { Server } from "effect-deepagents/server"
import { OpenAI } from "openai"
import { ask, readFrames } from "./door.ts"
import { foldFrames, type State } from "./reader.ts"

/** The server, the one input of the thread, and the whims of a client. */
export interface Scene {
  readonly url: string
  readonly token: string
  readonly thread: string
  /** The id of the input, 32 hex digits. */
  readonly run: string
  readonly input: string
  /** The number of events after which the client's next connection is cut. */
  readonly patience: () => number
  /** The client's answer to the next request. */
  readonly approves: () => boolean
  /** Called with each event that a client gets. */
  readonly note: () => void
  /** Called when a client's steering is in the thread. */
  readonly steered: () => void
}

/** A client's final transcript. Protocols without calls have no `calls`. */
export interface Shown {
  readonly texts: ReadonlyArray<string>
  readonly calls?: Readonly<Record<string, string>>
  readonly end: string
}

/** A client: `false` while the run is not over. */
type Attempt = () => Promise<Shown | undefined>

const base64 = (text: string): string => Buffer.from(text).toString("base64url")

/** The decision that a result tells. */
const outcome = (text: string): string => (text.startsWith("This call was refused") ? "denied" : text)

const sorted = (calls: Iterable<readonly [string, string]>): Readonly<Record<string, string>> =>
  Object.fromEntries([...calls].toSorted(([left], [right]) => left.localeCompare(right)))

const spoken = (texts: Iterable<string>): ReadonlyArray<string> => [...texts].filter((text) => text !== "")

/** The transcript of a reader of own frames. */
export const shownOf = ({ now }: State): Shown => ({
  texts: spoken([...now.messages.values()].flatMap((one) => (one.role === "ai" ? [Message.text(one)] : []))),
  calls: sorted([...now.calls].map(([id, text]) => [id, outcome(text)] as const)),
  end: now.end
})

const isOver = (state: State | undefined): state is State => state?.now.end === "RunCompleted completed"

const waitingIn = (state: State | undefined): ReadonlyArray<string> =>
  [...(state?.now.requests ?? [])].flatMap(([id, now]) => (now === "waits" ? [id] : []))

const decisionOf = (scene: Scene, id: string) =>
  scene.approves() ? { _tag: "Approve", id } : { _tag: "Reject", id, reason: "too much" }

const ownFrames = (scene: Scene): Attempt => {
  let state: State | undefined
  let after: string | undefined
  const at = `${scene.url}/threads/${scene.thread}`
  return async () => {
    const most = scene.patience()
    const isEnough = ({ length }: ReadonlyArray<Server.Frame>) => {
      scene.note()
      return length >= most
    }
    const { frames } = await Effect.runPromise(readFrames(`${at}/events`, { token: scene.token, after, isEnough }))
    state = foldFrames(frames, state)
    after = frames.at(-1)?.position ?? after
    if (isOver(state)) return shownOf(state)
    for (const id of waitingIn(state)) {
      const body = { decisions: [decisionOf(scene, id)] }
      await Effect.runPromise(ask(`${at}/decisions`, { token: scene.token, body }))
    }
    return undefined
  }
}

/** Own packets over a WebSocket. It steers the run once. */
const webSocket = (scene: Scene, steering: string): Attempt => {
  let state: State | undefined
  let after = ""
  let step: "due" | "sent" | "taken" = "due"
  const isSteered = () =>
    [...(state?.now.messages.values() ?? [])].some((one) => one.role === "human" && Message.text(one) === steering)
  return () => {
    const most = scene.patience()
    let count = 0
    const asked = new Set<string>()
    const at = `${scene.url.replace("http", "ws")}/threads/${scene.thread}/socket?after=${after}`
    // The types are for browsers, whose client sends no headers.
    const socket: WebSocket = Reflect.construct(WebSocket, [
      at,
      { headers: { authorization: `Bearer ${scene.token}` } }
    ])
    const send = (packet: object) => socket.send(JSON.stringify(packet))
    const steer = () => {
      const isAtWork = state !== undefined && (state.now.end === "" || state.now.end.includes("suspended"))
      if (step !== "due" || !isAtWork || waitingIn(state).length > 0) return
      step = "sent"
      send({ type: "steer", ref: "steer", input: steering })
    }
    const hear = ({ data }: { readonly data: unknown }) => {
      const packet = JSON.parse(String(data))
      if (packet.type === "beat") send(packet)
      if (packet.ref === "steer") step = packet.type === "ack" ? "taken" : "due"
      if (packet.type !== "event" && packet.type !== "reset") return
      scene.note()
      const position = Server.Position.make(packet.position)
      after = packet.position
      const frame: Server.Frame =
        packet.type === "reset"
          ? { _tag: "Reset", position, to: packet.to }
          : { _tag: "Event", position, event: Effect.runSync(AgentEvent.decode(packet.event)) }
      // A killed server loses steering that it had not taken up: it is sent to the next one.
      if (frame._tag === "Reset" && !isSteered()) step = "due"
      state = foldFrames([frame], state)
      if (isSteered()) scene.steered()
      steer()
      for (const id of waitingIn(state)) {
        if (!asked.has(id)) send({ type: "decide", ref: id, decisions: [decisionOf(scene, id)] })
        asked.add(id)
      }
      // Steering counts each time: its answer is waited for.
      if ((++count >= most && step !== "sent") || isOver(state)) socket.close()
    }
    return new Promise((resolve) => {
      const isIdle = setTimeout(() => socket.close(), 3_000)
      const settle = () => {
        // Without an answer it was not taken: the server is gone.
        if (step === "sent") step = "due"
        clearTimeout(isIdle)
        resolve(isOver(state) ? shownOf(state) : undefined)
      }
      socket.addEventListener("open", steer)
      socket.addEventListener("message", hear)
      socket.addEventListener("close", settle)
      socket.addEventListener("error", settle)
    })
  }
}

/** Ends a stream of packets behind some of them. */
const cutPackets = (scene: Scene, packets: ReadableStream<UIMessageChunk>): ReadableStream<UIMessageChunk> => {
  let left = scene.patience()
  return packets.pipeThrough(
    new TransformStream({
      transform: (packet, controller) => {
        scene.note()
        controller.enqueue(packet)
        if (--left <= 0) controller.error(new TypeError("network error"))
      }
    })
  )
}

const shownByChat = ({ metadata, parts }: UIMessage): Shown => ({
  texts: spoken(parts.flatMap((part) => (part.type === "text" ? [part.text] : []))),
  calls: sorted(
    parts.flatMap((part): ReadonlyArray<readonly [string, string]> => {
      if (part.type !== "dynamic-tool") return []
      if (part.state === "output-denied") return [[part.toolCallId, "denied"]]
      if (part.state === "output-error") return [[part.toolCallId, outcome(part.errorText)]]
      return [[part.toolCallId, part.state === "output-available" ? String(part.output) : part.state]]
    })
  ),
  end: JSON.stringify(metadata).includes('"stopReason":"completed"') ? "RunCompleted completed" : "waiting"
})

/** The transport of `useChat`, and the message that it builds. */
const chat = (scene: Scene): Attempt => {
  const headers = { authorization: `Bearer ${scene.token}` }
  const transport = new DefaultChatTransport<UIMessage>({ api: `${scene.url}/api/chat`, headers })
  const user: UIMessage = { id: scene.run, role: "user", parts: [{ type: "text", text: scene.input }] }
  let answer: UIMessage | undefined
  const send = (messages: Array<UIMessage>) =>
    transport.sendMessages({
      trigger: "submit-message",
      chatId: scene.thread,
      messageId: undefined,
      messages,
      abortSignal: undefined
    })
  const follow = async (packets: ReadableStream<UIMessageChunk>, message?: UIMessage) => {
    const stream = cutPackets(scene, packets)
    const known = message === undefined ? {} : { message }
    for await (const one of readUIMessageStream({ stream, ...known, terminateOnError: true })) answer = one
  }
  const answered = (message: UIMessage): UIMessage => ({
    ...message,
    parts: message.parts.map((part) =>
      part.type === "dynamic-tool" && part.state === "approval-requested"
        ? { ...part, state: "approval-responded", approval: { id: part.approval.id, approved: scene.approves() } }
        : part
    )
  })
  return async () => {
    const open = await transport.reconnectToStream({ chatId: scene.thread })
    await follow(open ?? (await send([user])))
    if (answer === undefined) return undefined
    if (JSON.stringify(answer.parts).includes('"approval-requested"')) {
      const message = answered(answer)
      await follow(await send([user, message]), message)
    }
    const shown = shownByChat(answer)
    return shown.end === "waiting" ? undefined : shown
  }
}

/** Ends a response where its connection is lost: `HttpAgent` leaves the failure of a body unhandled. */
const fetchToEnd = async (url: string, init: RequestInit): Promise<Response> => {
  const response = await fetch(url, init)
  const reader = response.body?.getReader()
  const body = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const read = await reader?.read().catch(() => undefined)
      if (read?.value === undefined) controller.close()
      else controller.enqueue(read.value)
    }
  })
  return new Response(body, { status: response.status, headers: response.headers })
}

const agUi = (scene: Scene): Attempt => {
  const headers = { authorization: `Bearer ${scene.token}` }
  let messages: HttpAgent["messages"] = [{ id: scene.run, role: "user", content: scene.input }]
  let turn = 0
  const drive = async (input: Parameters<HttpAgent["runAgent"]>[0]) => {
    const abort = new AbortController()
    const agent = new HttpAgent({ url: `${scene.url}/ag-ui`, threadId: scene.thread, headers, fetch: fetchToEnd })
    agent.messages = messages
    let left = scene.patience()
    let isWhole = false
    const onEvent = ({ event }: { readonly event: { readonly type: string } }) => {
      scene.note()
      if (event.type === "RUN_FINISHED") isWhole = true
      else if (--left <= 0) abort.abort()
    }
    await agent
      .runAgent({ ...input, runId: `run-${turn++}`, abortController: abort }, { onEvent })
      .catch(() => undefined)
    if (agent.messages.length > 0) ({ messages } = agent)
    return { isWhole, interrupts: agent.pendingInterrupts }
  }
  return async () => {
    let { interrupts, isWhole } = await drive({})
    const [interrupt] = isWhole ? interrupts : []
    if (interrupt !== undefined) {
      const payload = { approved: scene.approves() }
      const resume = [{ interruptId: interrupt.id, status: "resolved" as const, payload }]
      ;({ interrupts, isWhole } = await drive({ resume }))
    }
    if (!isWhole || interrupts.length > 0) return undefined
    return {
      texts: spoken(
        messages.flatMap((one) => (one.role === "assistant" && typeof one.content === "string" ? [one.content] : []))
      ),
      calls: sorted(
        messages.flatMap((one) =>
          one.role === "tool"
            ? [[one.toolCallId, outcome(typeof one.content === "string" ? one.content : "")] as const]
            : []
        )
      ),
      end: "RunCompleted completed"
    }
  }
}

const responses = (scene: Scene): Attempt => {
  const client = new OpenAI({ apiKey: scene.token, baseURL: `${scene.url}/v1`, maxRetries: 0 })
  const id = `resp_${scene.run}.${base64(scene.thread)}`
  let after: number | undefined
  return async () => {
    let left = scene.patience()
    const query = after === undefined ? { stream: true as const } : { stream: true as const, starting_after: after }
    for await (const event of await client.responses.retrieve(id, query)) {
      scene.note()
      after = event.sequence_number
      if (event.type === "response.completed") {
        const texts = event.response.output.flatMap((item) =>
          item.type === "message"
            ? [item.content.map((part) => (part.type === "output_text" ? part.text : "")).join("")]
            : []
        )
        return { texts: spoken(texts), end: "RunCompleted completed" }
      }
      // It waits for a decision, which this client can't make.
      if (event.type === "response.incomplete") after = undefined
      if (--left <= 0) return undefined
    }
    return undefined
  }
}

interface GraphMessage {
  readonly type: string
  readonly content: string
  readonly tool_call_id?: string
}

const langGraph = (scene: Scene): Attempt => {
  const client = new LangGraph({
    apiUrl: `${scene.url}/langgraph`,
    apiKey: null,
    defaultHeaders: { authorization: `Bearer ${scene.token}` },
    callerOptions: { maxRetries: 0 }
  })
  let after: string | undefined
  let messages: ReadonlyArray<GraphMessage> = []
  return async () => {
    const abort = new AbortController()
    let left = scene.patience()
    let status = ""
    const options = {
      streamMode: ["values" as const, "messages-tuple" as const],
      signal: abort.signal,
      ...(after === undefined ? {} : { lastEventId: after })
    }
    for await (const part of client.runs.joinStream(scene.thread, scene.run, options)) {
      scene.note()
      after = part.id ?? after
      const data = JSON.parse(JSON.stringify(part.data))
      if (part.event === "values") messages = data.messages
      if (String(part.event) === "end") ({ status } = data)
      if (--left <= 0) break
    }
    abort.abort()
    if (status === "interrupted") {
      const { interrupts } = await client.threads.get(scene.thread)
      const type = scene.approves() ? "approve" : "reject"
      const resume = Object.fromEntries(Object.keys(interrupts).map((id) => [id, { decisions: [{ type }] }]))
      await client.runs.create(scene.thread, "helper", { command: { resume } })
    }
    if (status !== "success") return undefined
    return {
      texts: spoken(messages.flatMap(({ content, type }) => (type === "ai" ? [content] : []))),
      calls: sorted(
        messages.flatMap(({ content, tool_call_id: id, type }) =>
          type === "tool" && id !== undefined ? [[id, outcome(content)] as const] : []
        )
      ),
      end: "RunCompleted completed"
    }
  }
}

const a2a = (scene: Scene): Attempt => {
  const headers = () => Promise.resolve({ authorization: `Bearer ${scene.token}` })
  const shouldRetryWithHeaders = () => Promise.resolve(undefined)
  const fetchImpl = createAuthenticatingFetchWithRetry(fetch, { headers, shouldRetryWithHeaders })
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    transports: [new JsonRpcTransportFactory({ fetchImpl })]
  })
  const id = `${base64(scene.run)}.${base64(scene.thread)}`
  const artifacts = new Map<string, string>()
  const textOf = ({ parts }: Task["artifacts"][number]) =>
    parts.map(({ content }) => (content?.$case === "text" ? content.value : "")).join("")
  const message = (text: string): A2AMessage => ({
    messageId: crypto.randomUUID(),
    contextId: scene.thread,
    taskId: id,
    role: Role.ROLE_USER,
    parts: [{ content: { $case: "text", value: text }, metadata: undefined, filename: "", mediaType: "text/plain" }],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: []
  })
  const take = (task: Task) => {
    artifacts.clear()
    for (const one of task.artifacts) artifacts.set(one.artifactId, textOf(one))
    return task.status?.state
  }
  return async () => {
    const client = await new ClientFactory(options).createFromUrl(scene.url)
    let left = scene.patience()
    let state: TaskState | undefined
    try {
      for await (const { payload } of client.resubscribeTask({ tenant: "", id })) {
        scene.note()
        if (payload?.$case === "task") state = take(payload.value)
        if (payload?.$case === "statusUpdate") ({ state } = payload.value.status ?? { state })
        if (payload?.$case === "artifactUpdate" && payload.value.artifact !== undefined) {
          const { append, artifact } = payload.value
          const before = append ? (artifacts.get(artifact.artifactId) ?? "") : ""
          artifacts.set(artifact.artifactId, before + textOf(artifact))
        }
        if (--left <= 0) return undefined
      }
    } catch {
      state = take(await client.getTask({ tenant: "", id }))
    }
    if (state === TaskState.TASK_STATE_INPUT_REQUIRED) {
      await client.sendMessage({
        tenant: "",
        metadata: undefined,
        configuration: { acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately: true },
        message: message(scene.approves() ? "approve" : "too much")
      })
    }
    if (state !== TaskState.TASK_STATE_COMPLETED) return undefined
    return { texts: spoken(artifacts.values()), end: "RunCompleted completed" }
  }
}

/** All clients, by name. */
export const clients: Readonly<Record<string, (scene: Scene) => Attempt>> = {
  "useChat's transport": chat,
  "own frames": ownFrames,
  WebSocket: (scene) => webSocket(scene, "Mind the numbers"),
  HttpAgent: agUi,
  openai: responses,
  LangGraph: langGraph,
  A2A: a2a
}

export const pause = (millis: number) => new Promise((done) => setTimeout(done, millis))

/** Lets a client come again until the run is over, while the server is there. Refused requests are tried again. */
export const persist = async (url: string, attempt: Attempt, ended: AbortSignal): Promise<Shown | undefined> => {
  const end = new Promise<undefined>((done) => ended.addEventListener("abort", () => done(undefined)))
  while (!ended.aborted) {
    const health = await fetch(`${url}/health`).catch(() => undefined)
    const tried = health === undefined ? undefined : attempt().catch(() => undefined)
    const shown = await Promise.race([tried, end])
    if (shown !== undefined) return shown
    await pause(20)
  }
  return undefined
}
