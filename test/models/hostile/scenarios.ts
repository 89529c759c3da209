import type { ServerResponse } from "node:http"
/** Actions of hostile and clumsy servers, and the expected ends of runs. */
import { gzipSync } from "node:zlib"
import type { ModelError } from "effect-deepagents"
import { flood, type Respond, wait } from "./server.ts"
import { type Called, headerSecret, key, type Wire } from "./wires.ts"

/** The end of a run: in good order, or with one of these reasons. */
export type Ending = "completed" | ModelError.Reason["_tag"]

export interface Scenario {
  readonly name: string
  readonly respond: (wire: Wire, others: { readonly elsewhere: string }) => Respond
  readonly ends: ReadonlyArray<Ending>
  /** The arguments with which the tool may run; without it, it does not. */
  readonly runs?: ReadonlyArray<number>
  /** The content of the final answer, if the hostile answer is the final one. */
  readonly says?: string
  /** How long the layer waits, in milliseconds. */
  readonly timeout?: number
  /** Takes its time: it runs only where all is run, or beside that for the first provider alone. */
  readonly long?: "full" | "first"
  readonly only?: (wire: Wire) => boolean
  /** The expected state of the other server. */
  readonly elsewhere?: "untouched"
}

const text = ({ isText }: Wire): boolean => isText
const openAi = ({ name }: Wire): boolean => name.startsWith("OpenAi")

const bytes = (wire: Wire, events: ReadonlyArray<string>): Buffer => Buffer.concat(events.map(wire.frame))

const says = (wire: Wire, said: string): Buffer =>
  bytes(wire, [...wire.open, ...wire.text(said), ...wire.close("stop")])

/** An answer with these calls. */
const calls = (wire: Wire, called: ReadonlyArray<Called>): ReadonlyArray<string> => [
  ...wire.open,
  ...called.flatMap((one) => {
    const [begin, args, end] = wire.call(one)
    return [begin, args, ...end]
  }),
  ...wire.close("calls")
]

/** Answers that are made beforehand cost the event loop nothing. */
const memo = <A>(make: (wire: Wire) => A): ((wire: Wire) => A) => {
  const made = new Map<Wire, A>()
  return (wire) => {
    const one = made.get(wire) ?? make(wire)
    made.set(wire, one)
    return one
  }
}

const begin = (response: ServerResponse, wire: Wire, headers: Readonly<Record<string, string>> = {}): void =>
  void response.writeHead(200, { "content-type": wire.contentType, ...headers })

/** Answers with these bytes, each piece a packet of its own. */
const answers = (make: (wire: Wire) => Buffer | ReadonlyArray<Buffer>, headers?: Readonly<Record<string, string>>) => {
  const pieces = memo((wire) => [make(wire)].flat())
  return (wire: Wire): Respond =>
    async (response) => {
      begin(response, wire, headers)
      for (const [at, piece] of pieces(wire).entries()) {
        if (at > 0) await wait(0)
        response.write(piece)
      }
      response.end()
    }
}

const events = (make: (wire: Wire) => ReadonlyArray<string>) => answers((wire) => bytes(wire, make(wire)))

/** Some of an answer, and then something else. */
const then =
  (more: (response: ServerResponse, wire: Wire) => void | Promise<void>, some = true) =>
  (wire: Wire): Respond =>
  async (response) => {
    begin(response, wire)
    if (some) response.write(bytes(wire, [...wire.open, ...wire.text("some")]))
    else response.flushHeaders()
    await wait(5)
    await more(response, wire)
  }

const fails =
  (
    status: number,
    body: (wire: Wire, request: string) => string | Buffer,
    headers: Readonly<Record<string, string>> = {}
  ) =>
  (wire: Wire): Respond =>
  (response, _, request) => {
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(body(wire, request))
  }

const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth)

const mebibyte = Buffer.alloc(1024 * 1024, "x")

/** 64 KB on the wire, 64 MB unpacked, without an end. */
const bomb = ((): Buffer => {
  const one = gzipSync(mebibyte)
  return Buffer.concat(Array.from({ length: 64 }, () => one))
})()

const news = memo((wire) => wire.frame(`{"type":"news","x":"${"x".repeat(500_000)}"}`))

const one: Called = { id: "call_a", args: '{"n":1}', index: 0 }
const two: Called = { id: "call_b", args: '{"n":2}', index: 1 }

export const scenarios: ReadonlyArray<Scenario> = [
  // Answers that are right, however they come
  { name: "a right answer", respond: answers((wire) => says(wire, "hello")), ends: ["completed"], says: "hello" },
  { name: "a call", respond: events((wire) => calls(wire, [one])), ends: ["completed"], runs: [1] },
  { name: "two calls", respond: events((wire) => calls(wire, [one, two])), ends: ["completed"], runs: [1, 2] },
  {
    name: "split at every byte",
    respond: answers((wire) => [...says(wire, "日🤔")].map((byte) => Buffer.of(byte))),
    ends: ["completed"],
    says: "日🤔"
  },
  {
    name: "a byte order mark",
    respond: answers((wire) => Buffer.concat([Buffer.of(0xef, 0xbb, 0xbf), says(wire, "hello")])),
    ends: ["completed"],
    says: "hello",
    only: text
  },
  {
    name: "lines that end with CR LF",
    respond: answers((wire) => Buffer.from(says(wire, "hello").toString().replaceAll("\n", "\r\n"))),
    ends: ["completed"],
    says: "hello",
    only: text
  },
  {
    name: "lines that end with CR",
    respond: answers((wire) => Buffer.from(says(wire, "hello").toString().replaceAll("\n", "\r"))),
    ends: ["completed"],
    says: "hello",
    only: text
  },
  {
    name: "comments, ids and retries between the events",
    respond: answers((wire) =>
      Buffer.concat([Buffer.from(": hi\n\nid: 7\nretry: 1\n\n"), wire.breath, says(wire, "hello")])
    ),
    ends: ["completed"],
    says: "hello",
    only: text
  },
  {
    name: "bytes that are no UTF-8",
    respond: answers((wire) => {
      const whole = says(wire, "he#lo")
      whole[whole.indexOf("#")] = 0xff
      return whole
    }),
    ends: ["completed"],
    says: "he�lo",
    only: text
  },
  {
    name: "half a surrogate pair",
    respond: events((wire) => [
      ...wire.open,
      ...wire.text("he#lo").map((event) => event.replace("#", "\\ud83e")),
      ...wire.close("stop")
    ]),
    ends: ["completed"]
  },
  {
    name: "gzip",
    respond: answers((wire) => gzipSync(says(wire, "hello")), { "content-encoding": "gzip" }),
    ends: ["completed"],
    says: "hello"
  },
  {
    name: "a million characters in one event",
    respond: answers((wire) => says(wire, "hello ".repeat(170_000))),
    ends: ["completed"],
    says: "hello hello"
  },

  // Invalid answers
  { name: "nothing at all", respond: answers(() => Buffer.alloc(0)), ends: ["BadResponse"] },
  {
    name: "a web page",
    respond: answers(() => Buffer.from("<html><body>Sign in</body></html>"), { "content-type": "text/html" }),
    ends: ["BadResponse"]
  },
  {
    name: "an error with a status of success",
    respond: answers((wire) => Buffer.from(wire.error("no")), { "content-type": "application/json" }),
    // Ollama's errors in a stream look the same.
    ends: ["BadResponse", "Overloaded"]
  },
  { name: "no content", respond: () => (response) => void response.writeHead(204).end(), ends: ["BadResponse"] },
  { name: "not modified", respond: () => (response) => void response.writeHead(304).end(), ends: ["InvalidRequest"] },
  { name: "an end without a beginning", respond: events(() => []), ends: ["BadResponse"] },
  {
    name: "cut before the end",
    respond: events((wire) => [...wire.open, ...wire.text("hello")]),
    ends: ["BadResponse"]
  },
  {
    name: "cut in the middle of an event",
    respond: answers((wire) => {
      const whole = says(wire, "hello")
      return whole.subarray(0, Math.floor(whole.length / 2))
    }),
    ends: ["BadResponse"]
  },
  {
    name: "cut in the middle of a call",
    respond: events((wire) => [
      ...wire.open,
      ...wire
        .call({ ...one, args: '{"n":' })
        .slice(0, 2)
        .flat()
    ]),
    ends: ["BadResponse"]
  },
  {
    name: "an event that is not JSON",
    respond: answers((wire) => Buffer.concat([wire.frame('{"type":"response.created", oops'), says(wire, "hello")])),
    ends: ["BadResponse"]
  },
  ...["null", "5", '"text"', "[1]"].map((event): Scenario => ({
    name: `an event that is ${event}`,
    respond: answers((wire) => Buffer.concat([wire.frame(event), says(wire, "hello")])),
    // Bedrock's SDK leaves out parts without a type, and so do we.
    ends: ["BadResponse", "completed"]
  })),
  ...[null, 5, "text", [null], { deep: [null] }].map((value): Scenario => ({
    name: `${JSON.stringify(value)} wherever an object belongs`,
    respond: events((wire) => [...wire.open, ...wire.text("hello"), ...wire.wrong(value), ...wire.close("stop")]),
    ends: ["completed", "BadResponse"]
  })),
  {
    name: "an event nested 100,000 deep",
    respond: answers((wire) =>
      Buffer.concat([
        wire.frame(`{"type":"message_start","message":${nested(100_000)},"choices":[],"error":null}`),
        says(wire, "hello")
      ])
    ),
    ends: ["BadResponse"]
  },

  // Connections that break, and servers that are silent
  {
    name: "a connection that breaks at once",
    respond: () => (response) => void response.socket?.resetAndDestroy(),
    ends: ["Transport"]
  },
  {
    name: "one that breaks behind the headers",
    respond: then((response) => void response.socket?.resetAndDestroy(), false),
    ends: ["Transport"]
  },
  {
    name: "one that breaks between events",
    respond: then((response) => void response.socket?.resetAndDestroy()),
    ends: ["Transport"]
  },
  {
    name: "one that breaks in a character",
    respond: then(async (response) => {
      response.write(Buffer.from('data: {"type":"response.output_text.delta","delta":"日').subarray(0, -1))
      await wait(5)
      response.socket?.resetAndDestroy()
    }),
    ends: ["Transport", "BadResponse"]
  },
  {
    name: "less than was announced",
    respond: () => async (response) => {
      response.writeHead(200, { "content-type": "text/event-stream", "content-length": "5000" })
      response.write(": hello\n\n")
      await wait(5)
      response.socket?.end()
    },
    ends: ["Transport", "BadResponse"]
  },
  { name: "no answer", respond: () => () => undefined, ends: ["Timeout"], timeout: 150 },
  {
    name: "headers and nothing else",
    respond: then(() => undefined, false),
    ends: ["Timeout"],
    timeout: 150
  },
  { name: "silence after some text", respond: then(() => undefined), ends: ["Timeout"], timeout: 150 },
  {
    name: "nothing but signs of life",
    respond: then((response, wire) => flood(response, wire.breath, 10)),
    ends: ["Timeout"],
    timeout: 150
  },
  {
    name: "an event that comes byte by byte",
    respond: then(async (response, wire) => {
      for (const byte of wire.frame(`{"type":"ping","x":"${"x".repeat(5000)}"}`)) {
        if (response.destroyed) return
        response.write(Buffer.of(byte))
        await wait(10)
      }
    }),
    ends: ["Timeout"],
    timeout: 150
  },

  // Without end
  {
    name: "a line without end",
    respond: then((response) => flood(response, mebibyte)),
    ends: ["BadResponse"],
    long: "first"
  },
  {
    name: "an event without end",
    respond: then((response) => flood(response, Buffer.from(`data: ${"x".repeat(60_000)}\n`))),
    ends: ["BadResponse"],
    long: "first"
  },
  {
    name: "comments without end",
    respond: then((response) => flood(response, Buffer.from(`: ${"x".repeat(60_000)}\n`))),
    ends: ["BadResponse"],
    long: "first"
  },
  {
    name: "events without end",
    respond: then((response, wire) => flood(response, news(wire))),
    ends: ["BadResponse"],
    long: "full"
  },
  {
    name: "a frame that says that it has 4 GB",
    respond: answers(() => Buffer.of(0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0)),
    ends: ["BadResponse"],
    only: (wire) => !wire.isText
  },
  {
    name: "a bomb of gzip",
    respond: () => (response) => {
      response.writeHead(200, { "content-type": "text/event-stream", "content-encoding": "gzip" }).end(bomb)
    },
    ends: ["BadResponse"],
    long: "first"
  },
  {
    name: "an error without end",
    respond: () => (response) => {
      response.writeHead(500, { "content-type": "text/plain" })
      return flood(response, mebibyte)
    },
    ends: ["Overloaded"]
  },
  {
    name: "an error that comes byte by byte",
    respond: () => (response) => {
      response.writeHead(503, { "content-type": "text/plain" })
      return flood(response, Buffer.from("x"), 10)
    },
    ends: ["Overloaded", "Timeout"],
    timeout: 200
  },
  {
    name: "an error that is a bomb of gzip",
    respond: fails(500, () => bomb, { "content-encoding": "gzip" }),
    ends: ["Overloaded"]
  },

  // Errors
  {
    name: "an error of a million characters that looks like many things",
    respond: fails(400, (wire) => wire.error("input token count ".repeat(60_000))),
    ends: ["InvalidRequest"]
  },
  {
    name: "an error in the stream of a million characters",
    respond: answers((wire) => wire.failure("input token count 1111 tokens > ".repeat(30_000))),
    ends: ["Overloaded"]
  },
  {
    name: "an error that repeats the request",
    respond: fails(400, (wire, request) => wire.error(`bad request: ${request}`)),
    ends: ["InvalidRequest"]
  },
  {
    name: "an error that repeats the key and the headers",
    respond: fails(401, (wire) => wire.error(`Incorrect key ${key}, tenant ${headerSecret}`)),
    ends: ["Authentication"]
  },
  {
    name: "an error with the key as the id of the request",
    respond: fails(500, (wire) => wire.error("no"), {
      "x-request-id": key,
      "request-id": key,
      "x-amzn-requestid": key
    }),
    ends: ["Overloaded"]
  },
  {
    name: "an error nested 100,000 deep",
    respond: fails(400, () => `{"error":{"message":${nested(100_000)}}}`),
    ends: ["InvalidRequest"]
  },
  {
    name: "a wait of thousands of years",
    respond: fails(429, (wire) => wire.error("slow down"), { "retry-after": "9".repeat(400) }),
    ends: ["RateLimited"]
  },
  {
    name: "a status in another language",
    respond: (wire) => (response) => {
      response.writeHead(401, "non autoris\u00e9", { "content-type": "application/json" }).end(wire.error("non"))
    },
    ends: ["Authentication"]
  },
  {
    name: "a status that no standard has",
    respond: fails(999, (wire) => wire.error("what?")),
    ends: ["Overloaded"]
  },
  {
    name: "a status that nobody knows",
    respond: fails(599, (wire) => wire.error("what?")),
    ends: ["Overloaded"]
  },

  // Redirects
  ...[301, 302, 303, 307, 308].map((status): Scenario => ({
    name: `a redirect (${status}) to another server`,
    respond:
      (_, { elsewhere }) =>
      (response) =>
        void response.writeHead(status, { location: `${elsewhere}/v1/stolen` }).end(),
    ends: ["InvalidRequest"],
    elsewhere: "untouched"
  })),
  {
    name: "a redirect to itself, once",
    respond: () => (response, request) =>
      void response.writeHead(307, { location: `${request.url ?? ""}?again` }).end(),
    ends: ["completed"]
  },
  {
    name: "a redirect to nowhere",
    respond: () => (response) => void response.writeHead(307, { location: "http://[" }).end(),
    ends: ["InvalidRequest"]
  },

  // Calls
  {
    name: "a call that is told twice",
    respond: events((wire) => calls(wire, [one, { ...one, index: 1 }])),
    ends: ["completed"],
    runs: [1]
  },
  {
    name: "two calls of one id",
    respond: events((wire) => calls(wire, [one, { ...one, args: two.args, index: 1 }])),
    ends: ["completed"],
    runs: [1, 2]
  },
  {
    name: "a call at a negative index",
    respond: events((wire) => calls(wire, [{ ...one, index: -1 }])),
    ends: ["completed", "BadResponse"],
    runs: [1]
  },
  {
    name: "calls at huge indices",
    respond: events((wire) =>
      calls(wire, [
        { ...one, index: 1e15 },
        { ...two, index: 1e300 }
      ])
    ),
    ends: ["completed"],
    runs: [1, 2]
  },
  {
    name: "calls at one index",
    respond: events((wire) => calls(wire, [one, { ...two, index: 0 }])),
    ends: ["completed", "BadResponse"],
    runs: [1, 2]
  },
  {
    name: "indices that are texts",
    respond: events((wire) =>
      calls(wire, [
        { ...one, index: "0" },
        { ...two, index: "1" }
      ])
    ),
    ends: ["completed"],
    runs: [1, 2]
  },
  {
    name: "calls that are interleaved",
    respond: events((wire) => {
      const [first, second] = [wire.call(one), wire.call(two)]
      return [...wire.open, first[0], second[0], second[1], first[1], ...second[2], ...first[2], ...wire.close("calls")]
    }),
    ends: ["completed"],
    runs: [1, 2]
  },
  {
    name: "events in the wrong order",
    respond: events((wire) => {
      const [begins, args, end] = wire.call(one)
      return [...wire.open, args, begins, ...end, ...wire.close("calls")]
    }),
    ends: ["completed", "BadResponse"],
    runs: [1]
  },
  {
    name: "a call without an id and a name",
    respond: events((wire) => calls(wire, [{ ...one, id: undefined, name: null }])),
    ends: ["completed"]
  },
  ...[3_000, 100_000].map((depth): Scenario => ({
    name: `arguments nested ${depth} deep`,
    respond: events((wire) => calls(wire, [{ ...one, args: `{"n":1,"x":${nested(depth)}}` }])),
    ends: ["completed"]
  })),
  {
    name: "arguments with a megabyte of text",
    respond: events((wire) => calls(wire, [{ ...one, args: `{"n":1,"x":"${"x".repeat(1_000_000)}"}` }])),
    ends: ["completed"],
    runs: [1]
  },
  {
    name: "arguments in pieces of one character",
    respond: events((wire) => {
      const [begins, , end] = wire.call(one)
      const args = `{"n":1,"x":"${"x".repeat(2_000)}"}`
      return [...wire.open, begins, ...[...args].map((piece) => wire.call({ ...one, args: piece })[1])]
        .concat(openAi(wire) && end.length > 0 ? wire.call({ ...one, args })[2] : end)
        .concat(wire.close("calls"))
    }),
    ends: ["completed"],
    runs: [1]
  },
  {
    name: "thousands of items that say nothing",
    respond: events((wire) => [
      ...wire.open,
      ...Array.from({ length: 3_000 }, (_, index) => wire.text("", index + 10)).flat(),
      ...wire.text("hello"),
      ...wire.close("stop")
    ]),
    ends: ["completed"],
    says: "hello"
  },

  // The end of an answer
  {
    name: "an end that comes twice",
    respond: events((wire) => [...wire.open, ...wire.text("hello"), ...wire.close("stop"), ...wire.close("stop")]),
    ends: ["completed"],
    says: "hello"
  },
  {
    name: "an error behind the end",
    respond: answers((wire) => Buffer.concat([says(wire, "hello"), wire.failure("too late")])),
    ends: ["completed", "Overloaded"]
  },
  {
    name: "no end of the connection behind the end",
    respond: (wire) => (response) => {
      begin(response, wire)
      response.write(says(wire, "hello"))
    },
    ends: ["completed"],
    says: "hello"
  },
  ...[-5, 1e308, "many", Number.NaN].map((count): Scenario => ({
    name: `${count} tokens`,
    respond: events((wire) => [
      ...wire.open,
      ...wire.text("hello"),
      ...wire.close("stop", {
        input_tokens: count,
        output_tokens: count,
        prompt_tokens: count,
        completion_tokens: count,
        cost: count
      })
    ]),
    ends: ["completed"],
    says: "hello"
  }))
]
