import { once } from "node:events"
import { createServer, type Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { Notify } from "effect-deepagents/rules"
import * as SmtpNotify from "effect-deepagents/rules/SmtpNotify"
import { HttpClient, HttpClientResponse } from "effect/http"

const one: Notify.Notification = {
  id: "r1",
  kind: "approval",
  severity: "high",
  title: "clerk wants to call pay",
  text: "pay to: <!channel> & <https://evil.example|click>\u001b[31m\u202e",
  threadId: "t",
  at: 0
}

/** A client that keeps what it is asked, and answers with a status. */
const server = (status: number) => {
  const asked: Array<{ readonly url: string; readonly body: unknown; readonly headers: unknown }> = []
  const layer = Layer.succeed(
    HttpClient.HttpClient,
    HttpClient.make((request, url) =>
      Effect.sync(() => {
        const { body } = request
        const text = body._tag === "Uint8Array" ? new TextDecoder().decode(body.body) : "null"
        asked.push({ url: url.href, body: JSON.parse(text), headers: request.headers })
        return HttpClientResponse.fromWeb(request, new Response(null, { status }))
      })
    )
  )
  return { asked, layer }
}

const send = (notification: Notify.Notification) => Notify.Notify.use((notify) => notify.send(notification))

const url = Redacted.make("https://hooks.example/secret")

describe("Notify", () => {
  it.effect("sends webhooks, Slack and Telegram messages, with control text of chats and terminals escaped", () =>
    Effect.gen(function* () {
      const { asked, layer } = server(200)
      const ways = [
        Notify.webhook({ url, headers: { authorization: Redacted.make("Bearer x") } }),
        Notify.slack({ url }),
        Notify.telegram({ token: Redacted.make("123:abc"), chatId: "7" })
      ]
      yield* send(one).pipe(Effect.provide(Notify.all(ways)), Effect.provide(layer))
      assert.deepStrictEqual(asked.map((request) => request.url).sort(), [
        "https://api.telegram.org/bot123:abc/sendMessage",
        "https://hooks.example/secret",
        "https://hooks.example/secret"
      ])
      const [webhook, slack, telegram] = asked
      assert.deepStrictEqual(webhook?.body, { ...one })
      assert.deepInclude(webhook?.headers, { authorization: "Bearer x" })
      const text = JSON.stringify(slack?.body)
      assert.notInclude(text, "<!channel>")
      assert.include(text, "&lt;!channel&gt; &amp;")
      for (const request of [slack, telegram]) assert.notMatch(JSON.stringify(request?.body), /\\u001b|\u202e/)
    })
  )

  it.effect("a failure says by what, and nothing secret; the other ways are tried all the same", () =>
    Effect.gen(function* () {
      const { asked, layer } = server(500)
      const error = yield* Effect.flip(
        send(one).pipe(
          Effect.provide(Notify.all([Notify.slack({ url }), Notify.webhook({ url })])),
          Effect.provide(layer)
        )
      )
      assert.strictEqual(asked.length, 2)
      assert.include(error.message, "the server answered with status 500")
      assert.notInclude(JSON.stringify(error), "hooks.example")
    })
  )

  it.effect("one way that fails, or dies, has only itself tried again", () =>
    Effect.gen(function* () {
      const sent: Array<string> = []
      const failures = new Map<string, Effect.Effect<void, Notify.NotifyError>>()
      const way = (name: string) =>
        Layer.succeed(Notify.Notify, {
          send: ({ id }) =>
            Effect.suspend(() => failures.get(name) ?? Effect.sync(() => void sent.push(`${name}:${id}`)))
        })
      const all = Notify.all([way("mail"), way("slack"), way("webhook")])
      yield* Effect.gen(function* () {
        failures.set("mail", Effect.fail(new Notify.NotifyError({ way: "mail", problem: "it is full" })))
        failures.set("webhook", Effect.die("a defect"))
        yield* Effect.exit(send(one))
        yield* Effect.exit(send(one))
        assert.deepStrictEqual(sent, ["slack:r1"])
        failures.delete("webhook")
        const error = yield* Effect.flip(send(one))
        assert.strictEqual(error.way, "mail")
        yield* Effect.exit(send({ ...one, id: "r2" }))
        failures.clear()
        yield* send(one)
        assert.deepStrictEqual(sent, ["slack:r1", "webhook:r1", "slack:r2", "webhook:r2", "mail:r1"])
        // A notification that went by all of them, and is sent anew, goes by all of them.
        yield* send(one)
        assert.lengthOf(sent, 8)
      }).pipe(Effect.provide(all))
    })
  )

  it.effect("only lets through notices of its kinds and severity", () =>
    Effect.gen(function* () {
      const sent: Array<string> = []
      const way = Layer.succeed(Notify.Notify, { send: ({ id }) => Effect.sync(() => void sent.push(id)) })
      const some: ReadonlyArray<Notify.Notification> = [
        { ...one, id: "a", severity: "low" },
        { ...one, id: "b", severity: "normal" },
        { ...one, id: "c", kind: "question" },
        { ...one, id: "d" }
      ]
      const filtered = Notify.only(way, { kinds: ["approval"], severity: "normal" })
      yield* Effect.provide(Effect.forEach(some, send), filtered)
      assert.deepStrictEqual(sent, ["b", "d"])
    })
  )

  it.live("by mail, over SMTP: one mail, with a subject of one line", () =>
    Effect.gen(function* () {
      const mails: Array<string> = []
      const talk = (socket: Socket) => {
        let data: string | undefined
        socket.write("220 test\r\n")
        socket.on("data", (chunk) => {
          for (const line of chunk.toString("utf8").split("\r\n")) {
            if (data !== undefined) {
              if (line !== ".") {
                data += `${line}\n`
                continue
              }
              mails.push(data)
              data = undefined
              socket.write("250 taken\r\n")
            } else if (/^DATA/i.test(line)) {
              data = ""
              socket.write("354 go on\r\n")
            } else if (/^QUIT/i.test(line)) socket.end("221 bye\r\n")
            else if (line !== "") socket.write("250 ok\r\n")
          }
        })
      }
      const smtp = yield* Effect.acquireRelease(
        Effect.promise(async () => {
          const listening = createServer(talk).listen(0, "127.0.0.1")
          await once(listening, "listening")
          return listening
        }),
        (listening) => Effect.sync(() => listening.close())
      )
      const address = smtp.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      const mail = SmtpNotify.layer({
        host: "127.0.0.1",
        port,
        from: "agents@example.com",
        to: ["ada@example.com"],
        insecure: true
      })
      yield* Effect.provide(send({ ...one, title: "pay\r\nBcc: eve@example.com" }), mail)
      assert.strictEqual(mails.length, 1)
      assert.include(mails[0], "X-Deepagents-Request: r1")
      assert.notMatch(mails[0] ?? "", /^Bcc:/m)
      const closed = SmtpNotify.layer({ host: "127.0.0.1", port: 1, from: "a@b.c", to: ["a@b.c"], insecure: true })
      const error = yield* Effect.flip(Effect.provide(send(one), closed))
      assert.include(error.message, "127.0.0.1:1 did not take it")
    }).pipe(Effect.scoped, Effect.timeout("20 seconds"))
  )
})
