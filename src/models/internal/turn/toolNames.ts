/** Tool names that a provider accepts, and the way back: a tool may be called `server.search`, a provider may not. */

/** `wire` gives the name to send, `own` the tool that a name from the wire means, `has` whether there is such a tool. */
export interface ToolNames {
  readonly has: (wire: string) => boolean
  readonly wire: (name: string) => string
  readonly own: (wire: string) => string
}

const fit = (name: string, limit: number): string =>
  name.replaceAll(/[^a-zA-Z0-9_-]/g, "_").slice(0, limit) || "unknown"

/** Two tools never share a name on the wire. `limit` is in characters. */
export const makeToolNames = (tools: ReadonlyArray<{ readonly name: string }>, limit: number): ToolNames => {
  const wires = new Map<string, string>()
  const owns = new Map<string, string>()
  const add = (name: string, wire: string): void => {
    wires.set(name, wire)
    owns.set(wire, name)
  }
  // A name that is fit keeps its spelling, whatever others are turned into.
  for (const { name } of tools) if (fit(name, limit) === name) add(name, name)
  for (const { name } of tools) {
    if (wires.has(name)) continue
    const base = fit(name, limit)
    let wire = base
    for (let number = 2; owns.has(wire); number++) {
      const suffix = `_${number}`
      wire = base.slice(0, limit - suffix.length) + suffix
    }
    add(name, wire)
  }
  return {
    has: (wire) => owns.has(wire),
    wire: (name) => wires.get(name) ?? fit(name, limit),
    own: (wire) => owns.get(wire) ?? wire
  }
}
