/**
 * Apps of MCP servers: strangers' pages in two frames without an origin. They reach this page by messages only, and this
 * page does little for them: their results, calls through the gates of the agent, and links that a person opens.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { useEffect, useRef, useState } from "preact/hooks"
import { isObject, Json, JsonObject } from "../core/Json.ts"
import type { CallResult } from "./appCalls.ts"
import * as Client from "./client.ts"
import { type Element, h, use } from "./element.ts"
import { hostOf, safeUrl } from "./markdown.ts"

interface Props {
  readonly thread: string
  readonly call: string
  readonly theme: "dark" | "light"
  readonly onCall: (tool: string, args: JsonObject) => Effect.Effect<CallResult, Client.Refused>
  readonly onClose: () => void
}

/** The most characters of a message, messages of a second, calls of an app, and pixels of its height. */
const most = { message: 500_000, perSecond: 100, calls: 50, height: 600 }

const Rpc = Schema.Struct({
  jsonrpc: Schema.Literal("2.0"),
  id: Schema.optionalKey(Schema.Union([Schema.String, Schema.Finite])),
  method: Schema.String,
  params: Schema.optionalKey(Json)
})
type Rpc = typeof Rpc.Type

const decodeRpc = Schema.decodeUnknownOption(Schema.fromJsonString(Rpc))

const readUnsafe = (data: unknown): Rpc | undefined => {
  const text: unknown = JSON.stringify(data)
  return typeof text === "string" && text.length <= most.message ? Option.getOrUndefined(decodeRpc(text)) : undefined
}

/** Reads a message of an app. It is none if it is in a cycle, or too deep. */
const readRpc = (data: unknown): Rpc | undefined =>
  Option.getOrUndefined(Exit.getSuccess(Effect.runSyncExit(Effect.sync(() => readUnsafe(data)))))

const Call = Schema.Struct({ name: Schema.String, arguments: Schema.optionalKey(JsonObject) })
const decodeCall = Schema.decodeUnknownOption(Call)

const resultOf = ({ details, isError, text }: CallResult) => {
  const structured = details ?? Option.getOrUndefined(Schema.decodeUnknownOption(Schema.fromJsonString(Json))(text))
  return {
    content: [{ type: "text", text }],
    isError,
    ...(isObject(structured) ? { structuredContent: structured } : {})
  }
}

/** A link that an app wants to open, and the answer to the app. */
interface Wanted {
  readonly url: URL
  readonly answer: (isOpen: boolean) => void
}

/** The hands of the page for one app. */
interface Hands {
  readonly theme: Props["theme"]
  readonly app: Client.App
  readonly post: (message: object) => void
  readonly ask: (wanted: Wanted) => boolean
  readonly setHeight: (height: number) => void
  readonly onCall: Props["onCall"]
}

const failure = (message: string, code = -32_000) => ({ error: { code, message } })

const greet = ({ app, theme }: Hands) => ({
  protocolVersion: "2026-01-26",
  hostInfo: { name: "effect-deepagents", version: "1" },
  hostCapabilities: { openLinks: {}, serverTools: {} },
  hostContext: {
    theme,
    platform: "web",
    displayMode: "inline",
    availableDisplayModes: ["inline"],
    containerDimensions: { maxHeight: most.height },
    toolInfo: { tool: { name: app.tool, inputSchema: { type: "object" } } }
  }
})

/** Makes the answers to an app. */
const makeHost = (hands: Hands) => {
  const { app, ask, onCall, post, setHeight } = hands
  const tell = (method: string, params: object) => post({ jsonrpc: "2.0", method, params })
  let calls = 0
  let isCalling = false

  const call = (params: unknown, reply: (answer: object) => void): void => {
    const request = Option.getOrUndefined(decodeCall(params))
    if (request === undefined) return reply(failure("Expected the name of a tool and its arguments.", -32_602))
    if (isCalling) return reply(failure("Another call is at work; wait for its result."))
    if (++calls > most.calls) return reply(failure("This app made too many calls; open it again."))
    isCalling = true
    Effect.runFork(
      Effect.match(onCall(request.name, request.arguments ?? {}), {
        onSuccess: (result) => ({ result: resultOf(result) }),
        onFailure: ({ problem }) => failure(problem)
      }).pipe(
        Effect.map((answer) => {
          isCalling = false
          reply(answer)
        })
      )
    )
  }

  const openLink = (params: unknown, reply: (answer: object) => void): void => {
    const address = isObject(params) ? params["url"] : undefined
    const url = typeof address === "string" ? safeUrl(address) : undefined
    const isAsked =
      url !== undefined &&
      url.protocol !== "mailto:" &&
      ask({ url, answer: (isOpen) => reply(isOpen ? { result: {} } : failure("The person did not open the link.")) })
    if (!isAsked) reply(failure("This link can't be opened now."))
  }

  return ({ id, method, params }: Rpc): void => {
    const reply = (answer: object): void => {
      if (id !== undefined) post({ jsonrpc: "2.0", id, ...answer })
    }
    switch (method) {
      case "ui/initialize":
        return reply({ result: greet(hands) })
      case "ui/notifications/initialized":
        tell("ui/notifications/tool-input", { arguments: app.arguments })
        if (app.result !== undefined) tell("ui/notifications/tool-result", resultOf(app.result))
        return undefined
      case "ui/notifications/size-changed": {
        const height = isObject(params) ? params["height"] : undefined
        return typeof height === "number" ? setHeight(Math.min(most.height, Math.max(60, height))) : undefined
      }
      case "tools/call":
        return call(params, reply)
      case "ui/open-link":
        return openLink(params, reply)
      case "ping":
        return reply({ result: {} })
      default:
        return reply(failure("This page does not do that.", -32_601))
    }
  }
}

const question = ({ answer, url }: Wanted): Element =>
  h(
    "div",
    { class: "banner", role: "alert" },
    h("span", null, "The app wants to open ", h("code", null, url.href)),
    h(
      "a",
      { href: url.href, target: "_blank", rel: "noopener noreferrer", class: "button", onClick: () => answer(true) },
      `Open ${hostOf(url)}`
    ),
    h("button", { type: "button", onClick: () => answer(false) }, "Do not open")
  )

interface FrameProps extends Pick<Props, "call" | "onCall" | "theme" | "thread"> {
  readonly app: Client.App
}

/** The frame of an app. */
const Frame = ({ app, call, onCall, theme, thread }: FrameProps): Element => {
  const frame = useRef<HTMLIFrameElement>(null)
  const [wanted, setWanted] = useState<Wanted>()
  const [height, setHeight] = useState(240)
  const isAsking = useRef(false)
  useEffect(() => {
    const host = makeHost({
      theme,
      app,
      onCall,
      setHeight,
      // The frame has no origin that a message could be for.
      post: (message) => frame.current?.contentWindow?.postMessage(message, "*"),
      ask: ({ answer, url }) => {
        if (isAsking.current) return false
        isAsking.current = true
        const settle = (isOpen: boolean) => {
          isAsking.current = false
          setWanted(undefined)
          answer(isOpen)
        }
        setWanted({ url, answer: settle })
        return true
      }
    })
    let second = 0
    let count = 0
    const listen = ({ data, source }: MessageEvent): void => {
      if (source === null || source !== frame.current?.contentWindow) return
      const now = Math.floor(Date.now() / 1_000)
      count = now === second ? count + 1 : 1
      second = now
      const rpc = count > most.perSecond ? undefined : readRpc(data)
      if (rpc !== undefined) host(rpc)
    }
    addEventListener("message", listen)
    return () => removeEventListener("message", listen)
  }, [])
  return h(
    "div",
    null,
    wanted === undefined ? null : question(wanted),
    h("iframe", {
      ref: frame,
      src: Client.appFrameOf(thread, call, app.origins),
      sandbox: "allow-scripts",
      referrerPolicy: "no-referrer",
      title: `App of ${app.server}`,
      style: { height: `${height}px` }
    })
  )
}

/** Shows the app of a call. It reaches other machines only if a person lets it. */
export const AppView = ({ call, onCall, onClose, theme, thread }: Props): Element => {
  const [app, setApp] = useState<Client.App>()
  const [problem, setProblem] = useState("")
  const [isAllowed, setIsAllowed] = useState(false)
  useEffect(() => {
    Effect.runFork(
      Effect.match(Client.app(thread, call), {
        onSuccess: setApp,
        onFailure: (refused) => setProblem(refused.problem)
      })
    )
  }, [])
  const isShown = app !== undefined && (isAllowed || app.origins.length === 0)
  return h(
    "section",
    { class: "app", "aria-label": "App" },
    h(
      "div",
      { class: "bar" },
      h("span", { class: "grow quiet" }, app === undefined ? "App" : `App of ${app.server}: a page of a stranger`),
      h("button", { type: "button", class: "plain", onClick: onClose }, "Close app")
    ),
    problem === "" ? null : h("p", { class: "bad", role: "alert" }, problem),
    app === undefined || isShown
      ? null
      : h(
          "div",
          null,
          h("p", null, "This app wants to reach other machines, and can send them what it shows:"),
          h(
            "ul",
            null,
            app.origins.map((origin) => h("li", null, h("code", null, origin)))
          ),
          h("button", { type: "button", onClick: () => setIsAllowed(true) }, "Show it, and let it reach them")
        ),
    isShown ? use(Frame, { app, call, onCall, theme, thread }) : null
  )
}
