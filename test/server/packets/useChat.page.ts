/** A page with useChat, which the test drives: its fetch can be cut after some bytes. */
import { useChat } from "@ai-sdk/react"
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai"
import { createElement } from "react"
import { createRoot } from "react-dom/client"

let cutAfter: number | undefined

const cutting: typeof fetch = async (input, init) => {
  const response = await fetch(input, init)
  const limit = cutAfter
  cutAfter = undefined
  if (limit === undefined || response.body === null) return response
  let count = 0
  const body = response.body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        const rest = limit - count
        count += chunk.length
        if (rest > 0) controller.enqueue(chunk.subarray(0, rest))
        if (count > limit) controller.error(new TypeError("network error"))
      }
    })
  )
  return new Response(body, { status: response.status, headers: response.headers })
}

type Chat = ReturnType<typeof useChat>

const root = createRoot(document.body.appendChild(document.createElement("div")))
let chat: Chat | undefined

const App = ({ id, token }: { readonly id: string; readonly token: string }) => {
  chat = useChat({
    id,
    transport: new DefaultChatTransport({
      api: "/api/chat",
      fetch: cutting,
      headers: { authorization: `Bearer ${token}` }
    }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    onError: () => undefined
  })
  return createElement("pre", null, JSON.stringify({ status: chat.status, messages: chat.messages }))
}

/** The calls of the test. */
const driver = {
  mount: (id: string, token: string) => {
    chat = undefined
    root.render(createElement(App, { id, token, key: id }))
  },
  isReady: () => chat !== undefined,
  cut: (bytes: number) => {
    cutAfter = bytes
  },
  send: (text: string) => void chat?.sendMessage({ text }),
  again: () => void chat?.resumeStream(),
  regenerate: () => void chat?.regenerate(),
  stop: () => void chat?.stop(),
  decide: (id: string, approved: boolean) => void chat?.addToolApprovalResponse({ id, approved, reason: "said so" }),
  status: () => chat?.status,
  error: () => chat?.error?.message,
  messages: () => JSON.stringify(chat?.messages ?? [])
}
export type Driver = typeof driver

Object.assign(globalThis, { driver })
