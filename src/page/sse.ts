/** Events of a server, from the text of their stream. */

export interface Packet {
  readonly id: string
  readonly event: string
  readonly data: string
}

/** The longest line that is read, in characters: the rest of the stream is not the server's. */
const longest = 32_000_000

/** Makes a reader of pieces of text. A piece may end anywhere. Comments and unfinished events give nothing. */
export const makeParser = (): ((piece: string) => ReadonlyArray<Packet>) => {
  /** Pieces of a line without its end. */
  let open: Array<string> = []
  let length = 0
  let id = ""
  let event = ""
  let data: Array<string> = []
  const takeLine = (line: string): Packet | undefined => {
    if (line === "") {
      const packet =
        data.length === 0 ? undefined : { id, event: event === "" ? "message" : event, data: data.join("\n") }
      event = ""
      data = []
      return packet
    }
    const colon = line.indexOf(":")
    const name = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1))
    if (name === "id" && !value.includes("\0")) id = value
    if (name === "event") event = value
    if (name === "data") data.push(value)
    return undefined
  }
  return (piece) => {
    const packets: Array<Packet> = []
    const lines = piece.split("\n")
    const rest = lines.pop() ?? ""
    for (const line of lines) {
      const whole = [...open, line].join("")
      open = []
      length = 0
      const packet = takeLine(whole.endsWith("\r") ? whole.slice(0, -1) : whole)
      if (packet !== undefined) packets.push(packet)
    }
    length += rest.length
    if (length <= longest) open.push(rest)
    return packets
  }
}
