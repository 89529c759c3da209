/** Spellings of private hosts, as somebody would write them who wants to get past rules. */

const v4 = ["127.0.0.1", "10.1.2.3", "172.16.5.4", "192.168.1.1", "169.254.169.254", "100.100.100.200", "0.0.0.0"]

const octets = (address: string) => address.split(".").map(Number) as [number, number, number, number]
const hex = (value: number) => value.toString(16)

/** The ways to write one IPv4 address in a URL. */
const spellings = (address: string): ReadonlyArray<string> => {
  const [a, b, c, d] = octets(address)
  const whole = ((a << 24) | (b << 16) | (c << 8) | d) >>> 0
  const mapped = `${hex((a << 8) | b)}:${hex((c << 8) | d)}`
  return [
    address,
    `${address}.`,
    String(whole),
    `0x${hex(whole)}`,
    `0X${hex(whole).toUpperCase()}`,
    `0${whole.toString(8)}`,
    `${a}.${(b << 16) | (c << 8) | d}`,
    `${a}.${b}.${(c << 8) | d}`,
    `0x${hex(a)}.0x${hex(b)}.0x${hex(c)}.0x${hex(d)}`,
    `0${a.toString(8)}.0${b.toString(8)}.0${c.toString(8)}.0${d.toString(8)}`,
    `0x${hex(a)}.${b}.0${c.toString(8)}.${d}`,
    `000${a.toString(8)}.0x0${hex(b)}.${c}.${d}`,
    address.replaceAll(".", "。"),
    address.replaceAll(".", "．"),
    address.replaceAll(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit))),
    address.replaceAll(/[1-9]/g, (digit) => String.fromCodePoint(0x2460 + Number(digit) - 1)),
    address.replaceAll(".", "%2e"),
    [...address].map((character) => `%${character.charCodeAt(0).toString(16)}`).join(""),
    `${address}:8080`,
    `user:secret@${address}`,
    `[::ffff:${address}]`,
    `[::FFFF:${mapped}]`,
    `[0:0:0:0:0:ffff:${mapped}]`,
    `[::${address}]`,
    `[::ffff:0:${address}]`,
    `[64:ff9b::${address}]`,
    `[64:ff9b:1::${mapped}]`,
    `[2002:${mapped}::1]`,
    `[2001:0:${mapped}::1]`
  ]
}

const v6 = [
  ..."[::1] [::] [0:0:0:0:0:0:0:1] [0000:0000:0000:0000:0000:0000:0000:0001] [::0:1] [::1]:80".split(" "),
  ..."[fe80::1] [febf::1] [fc00::1] [fd00:ec2::254] [fdff::1] [fec0::1] [ff02::1] [100::1]".split(" "),
  ..."[::1%25lo] [fe80::1%25eth0] [fe80::a9fe:a9fe] [64:ff9b:1:fffe::7f00:1] [::ffff:0:127.0.0.1]".split(" "),
  ..."[2001:db8::1] [3fff::1] [5f00::1] [100:0:0:1::1] [200::1] [300:1234::1] [4000::1] [e000::1]".split(" ")
]

const names = [
  ..."localhost LOCALHOST localhost. LocalHost:3000 a.localhost ｌｏｃａｌｈｏｓｔ loc%61lhost".split(" "),
  ..."metadata.google.internal metadata instance-data printer.local router.lan nas.home.arpa".split(" "),
  ..."localhost.. localhost... a..localhost .localhost 127.0.0.1.. 10.0.0.1... metadata.google.internal..".split(" "),
  ..."ip6-localhost ⓛⓞⓒⓐⓛⓗⓞⓢⓣ localhost\u00ad loc\u200balhost localhost%2e%2e host.docker.internal".split(" "),
  ..."db.internal intranet kubernetes.default.svc.cluster.local localhost.localdomain".split(" ")
]

const more = [
  ..."127.1 127.0.1 127.255.255.255 0 0.0.0.0. 00 0x0 192.0.0.192 198.18.0.1 192.0.2.1".split(" "),
  ..."168.63.129.16 0xa83f8110 100.100.100.200 [::ffff:168.63.129.16]".split(" "),
  ..."198.51.100.1 203.0.113.1 224.0.0.1 240.0.0.1 255.255.255.255 172.31.255.255 10.0.0.0".split(" ")
]

export const hosts: ReadonlyArray<string> = [...v4.flatMap(spellings), ...v6, ...names, ...more]

/** Other URLs that may not be opened. */
export const urls = [
  ..."file:///etc/passwd ftp://example.com/ gopher://127.0.0.1:70/ data:text/plain,x javascript:1".split(" "),
  ..."ws://example.com/ http://user@example.com/ https://user:pw@example.com/".split(" ")
]
