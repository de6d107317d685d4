/** The text of an HTML page: each kind of element, of markup and of reference. */
import { describe, expect, it } from 'vitest';
import { htmlText } from '../../../src/tools/coding/web/htmlText.ts';

const BASE = 'https://site.test/a/b?q#f';
const textOf = (html: string): string => htmlText(html, BASE).text;

describe('the text of a page', () => {
  it.each(['script', 'style', 'noscript', 'template', 'svg', 'math', 'iframe', 'object'])(
    'leaves out <%s> in any case, as far as its end',
    (name) => {
      expect(textOf(`a<${name} x="1">b <i>c</i></${name.toUpperCase()}>d`)).toBe('ad');
      expect(textOf(`a<${name.toUpperCase()}>b</${name} >d`)).toBe('ad');
      expect(textOf(`a<${name}>b`)).toBe('a');
    },
  );

  it.each([1, 2, 3, 4, 5, 6])('marks a heading of level %i', (level) => {
    expect(textOf(`a<h${level}>b</h${level}>c`)).toBe(`a\n\n${'#'.repeat(level)} b\n\nc`);
    expect(textOf(`<H${level}>b</H${level}>`)).toBe(`${'#'.repeat(level)} b`);
  });

  it.each(['p', 'blockquote', 'table', 'dl', 'ul', 'ol'])('has a blank line around <%s>', (name) => {
    expect(textOf(`a<${name}>b</${name}>c`)).toBe('a\n\nb\n\nc');
    expect(textOf(`<${name}>a</${name}><${name}>b</${name}>`)).toBe('a\n\nb');
  });

  it.each(
    `address article aside body dd details dialog div dt fieldset figcaption figure footer form header main nav section
     summary tbody thead tr`.split(/\s+/),
  )('has a line for <%s>', (name) => {
    expect(textOf(`a<${name}>b</${name}>c`)).toBe('a\nb\nc');
    expect(textOf(`<${name}>a</${name}><${name}>b</${name}>`)).toBe('a\nb');
  });

  it.each(['b', 'i', 'em', 'span', 'code', 'label', 'unknown-tag'])('goes on within a line at <%s>', (name) => {
    expect(textOf(`a<${name}>b</${name}>c`)).toBe('abc');
    expect(textOf(`a <${name}>b</${name}> c`)).toBe('a b c');
    expect(textOf(`a<${name}> b </${name}>c`)).toBe('a b c');
  });

  it.each([
    ['a<br>b<BR/>c', 'a\nb\nc'],
    ['a<hr>b', 'a\n---\nb'],
    ['<ul><li>a<li>b</ul>c', '- a\n- b\n\nc'],
    ['<ol><li>a</li><li>b</li></ol>', '- a\n- b'],
    ['<table><tr><th>a</th><td>b</td></tr><tr><td>c<td>d</tr></table>', '| a | b\n| c | d'],
    ['a<pre>b\n  c</pre>d', 'a\n\n```\nb\n  c\n```\n\nd'],
    ['<pre>a  b&lt;</pre>', '```\na  b<\n```'],
    ['a</pre>b', 'a\n\nb'],
    ['x<img alt="a picture">y', 'xa picturey'],
    ["<img src=x alt='a &amp; b'>", 'a & b'],
    ['<img src=x>', ''],
    ['<img alt="&amp;lt;b&amp;gt; &amp;amp;">', '&lt;b&gt; &amp;'],
    ['<p title = "x > y">a</p>', 'a'],
    ["<p title =\n'x > y' id=z>a</p>", 'a'],
    ["<p title=it's>a</p><p title='b'>c</p>", 'a\n\nc'],
    ["<p title='=' x=\"'>\">a</p>", 'a'],
    ['<pre>a<pre>b</pre>  c</pre>  d  e', '```\na\n\n```\nb\n```\n\n  c\n```\n\nd e'],
    ['  a \n\t b  ', 'a b'],
    ['a\u00a0b', 'a b'],
    ['a<!-- <b>b</b> -->c', 'ac'],
    ['a<!-- b', 'a'],
    ['a<!-->b<!--->c<!---->d', 'abcd'],
    ['a<svg width="1"/>b<MATH />c', 'abc'],
    ['a<script src="x"/>b</script>c', 'ac'],
    ['a<svg d="/>">b</svg>c', 'ac'],
    ['<!DOCTYPE html>a<?xml x?>b', 'ab'],
    ['1 < 2 and 3 > 2', '1 < 2 and 3 > 2'],
    ['a<b', 'a'],
    ['<a title="x > y" b=\'>\'>c', 'c'],
    ['a<p>\n\n\n<p>\n<p>b', 'a\n\nb'],
    ['', ''],
  ])('of %j is %j', (html, text) => {
    expect(textOf(html)).toBe(text);
  });

  it.each([
    ['<a href="/x">a</a>', 'a (https://site.test/x)'],
    ['<a href="c">a</a>', 'a (https://site.test/a/c)'],
    ['<a href="?x&amp;y">a</a>', 'a (https://site.test/a/b?x&y)'],
    ['<A HREF=http://other.test>a</A>b', 'a (http://other.test/)b'],
    ["<a href = '//other.test/x' >a</a>", 'a (https://other.test/x)'],
    ['<a href="#x">a</a>', 'a'],
    ['<a href="mailto:a@b.c">a</a>', 'a'],
    ['<a href="javascript:x()">a</a>', 'a'],
    ['<a data-href="/x">a</a>', 'a'],
    ['<a href="http://">a</a>', 'a'],
    ['<a href="/x"></a>b', 'b'],
    ['<a href="/x"> </a>b', 'b'],
    ['<a href="/x">a', 'a'],
    ['<a href="/x">a</a>b</a>c', 'a (https://site.test/x)bc'],
    ['<a href="/x">a</a> and <a>b</a>', 'a (https://site.test/x) and b'],
  ])('names the address of the link %j', (html, text) => {
    expect(textOf(html)).toBe(text);
  });

  it('names an address of 500 characters, and no longer one', () => {
    const address = `https://site.test/${'x'.repeat(482)}`;
    expect([address.length, textOf(`<a href="${address}">a</a>`)]).toEqual([500, `a (${address})`]);
    expect(textOf(`<a href="${address}x">a</a>`)).toBe('a');
  });

  it.each([
    ['&amp;&lt;&gt;&quot;&apos;', '&<>"\''],
    ['&copy;&reg;&trade;&hellip;&mdash;&ndash;', '©®™…—–'],
    ['&lsquo;&rsquo;&ldquo;&rdquo;&bull;&middot;', '‘’“”•·'],
    ['&laquo;&raquo;&times;&larr;&rarr;&deg;&euro;&pound;&sect;&para;', '«»×←→°€£§¶'],
    ['&auml;&ouml;&uuml;&Auml;&Ouml;&Uuml;&szlig;&eacute;&egrave;', 'äöüÄÖÜßéè'],
    ['a&nbsp;b', 'a b'],
    ['&#65;&#x41;&#X41;&#128512;&#x1F600;', 'AAA😀😀'],
    ['&#0;&#x110000;&#9999999;', '\uFFFD\uFFFD\uFFFD'],
    ['&#x10ffff;', '\u{10ffff}'],
    ['&unknown; &constructor; &amp &; &#; &#x;', '&unknown; &constructor; &amp &; &#; &#x;'],
    ['&amp;lt;', '&lt;'],
  ])('of the references %j is %j', (html, text) => {
    expect(textOf(html)).toBe(text);
  });
});

describe('the title of a page', () => {
  it.each([
    ['<title> a\n b </title>c', 'a b', 'c'],
    ['<TITLE>a &amp; b</TITLE>', 'a & b', ''],
    ['<head><title>a</head>b', 'a', 'b'],
    ['a', '', 'a'],
    ['<title></title>a', '', 'a'],
  ])('of %j is %j', (html, title, text) => {
    expect(htmlText(html, BASE)).toEqual({ title, text });
  });
});
