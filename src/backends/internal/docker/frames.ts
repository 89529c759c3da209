/** The stream of a container's command: frames of one channel each, cut anywhere on their way. */

/** The content of a frame. */
export interface Frame {
  readonly channel: "stdout" | "stderr"
  readonly bytes: Uint8Array
}

/** A channel, three zeros, and the length of the content in four bytes. */
const headerSize = 8

/** A splitter of a stream into frames. `isWhole` says whether it ended behind a frame. */
export interface Splitter {
  readonly push: (chunk: Uint8Array) => ReadonlyArray<Frame>
  readonly isWhole: () => boolean
}

/**
 * Makes a splitter. The content of a frame is passed on as it comes, so a frame of any length takes no memory.
 */
export const makeSplitter = (): Splitter => {
  const header = new Uint8Array(headerSize)
  let headerBytes = 0
  let remaining = 0
  let channel: Frame["channel"] = "stdout"
  return {
    isWhole: () => headerBytes === 0 && remaining === 0,
    push: (chunk) => {
      const frames: Array<Frame> = []
      let at = 0
      while (at < chunk.length) {
        if (remaining > 0) {
          const bytes = chunk.subarray(at, at + remaining)
          frames.push({ channel, bytes })
          at += bytes.length
          remaining -= bytes.length
          continue
        }
        const part = chunk.subarray(at, at + headerSize - headerBytes)
        header.set(part, headerBytes)
        headerBytes += part.length
        at += part.length
        if (headerBytes === headerSize) {
          channel = header[0] === 2 ? "stderr" : "stdout"
          remaining = new DataView(header.buffer).getUint32(4)
          headerBytes = 0
        }
      }
      return frames
    }
  }
}

/** Makes a decoder of frames: each channel is UTF-8 of its own. */
export const makeDecoder = () => {
  const decoders = {
    stdout: new TextDecoder("utf-8", { ignoreBOM: true }),
    stderr: new TextDecoder("utf-8", { ignoreBOM: true })
  }
  return ({ bytes, channel }: Frame) => ({ channel, text: decoders[channel].decode(bytes, { stream: true }) })
}
