// The report's page. Everything that a run says is a stranger's: it goes into the page as text nodes and
// attribute values alone, never as markup, and is of no type until it has been looked at.
'use strict';
(() => {
  const HIGHLIGHT_MOST = 200000;  // characters; beyond, colours would take seconds
  const DIFF_MOST = 4000;         // changed lines; beyond, the comparison would take seconds
  const DIFF_CONTEXT = 4;         // equal lines around a change

  // ---- words and elements ------------------------------------------------------------------------

  const $ = (id) => document.getElementById(id);

  // What a terminal or a reader's eye could be fooled by, shown by its code.
  const visible = (value) => String(value).replace(
      /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g,
      (c) => c === '\r' ? '' : `⟨U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`);

  // An element; strings among the children become text.
  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {}))
      if (value !== null && value !== undefined && value !== false)
        element.setAttribute(name, value === true ? '' : String(value));
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  }

  const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);
  const number = (value) => isNumber(value) ? value : null;
  const text = (value) => typeof value === 'string' ? value : '';
  const list = (value) => Array.isArray(value) ? value : [];
  const object = (value) => value !== null && typeof value === 'object' && !Array.isArray(value) ? value : {};

  const round = (value, digits) => String(Number(value.toPrecision(digits)));
  const fixed = (value, digits) => isNumber(value) ? value.toFixed(digits) : '–';
  const factor = (value) => isNumber(value) ? `${value >= 100 ? value.toFixed(0) : value.toFixed(2)}×` : '–';
  const small = (value) => !isNumber(value) ? '–' : value === 0 ? '0'
    : Math.abs(value) < 0.001 || Math.abs(value) >= 1e5 ? value.toExponential(2) : round(value, 3);
  const interval = (pair, digits = 3) =>
    list(pair).length === 2 && pair.every(isNumber) ? `${pair[0].toFixed(digits)} – ${pair[1].toFixed(digits)}` : '';
  function time(us) {
    if (!isNumber(us)) return '–';
    if (us < 1000) return `${us.toFixed(us < 100 ? 2 : 1)} µs`;
    return us < 1e6 ? `${(us / 1000).toFixed(3)} ms` : `${(us / 1e6).toFixed(3)} s`;
  }
  function unit(value, word) {
    const step = [[1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']].find(([size]) => value >= size);
    return step ? `${round(value / step[0], 3)} ${step[1]}${word}` : `${round(value, 3)} ${word}`;
  }
  const count = (n, word) => `${n} ${word}${n === 1 ? '' : 's'}`;

  const verdictClass = (verdict) =>
    verdict === 'correct' ? 'good' : verdict === 'infrastructure_error' ? 'doubt' : 'bad';
  const verdictTag = (verdict) => make('span', {class: `tag ${verdictClass(verdict)}`}, visible(verdict));
  const run = JSON.parse($('run').textContent);
  const meanings = object(run.flags);
  const meaningOf = (flag) => Object.hasOwn(meanings, flag) ? meanings[flag] : '';
  const flagTag = (flag) =>
    make('span', {class: 'tag doubt', title: visible(meaningOf(flag)) || null}, visible(flag));

  // ---- the run -----------------------------------------------------------------------------------

  const samples = list(run.samples);
  samples.forEach((sample, index) => { sample.index = index; });
  const indexOf = new Map(samples.map((sample) => [sample.key, sample.index]));

  function showHeading() {
    const name = visible(text(run.run));
    document.title = `${name} – kernelbench`;
    $('title').textContent = name;
    const parts = [visible(text(run.tool)), ...list(run.conditions).map(visible)];
    const day = (stamp) => text(stamp).slice(0, 16).replace('T', ' ');
    if (run.judged)
      parts.push(`judged ${day(run.judged[0])}` +
        (day(run.judged[0]) === day(run.judged[1]) ? '' : ` to ${day(run.judged[1])}`) + ' UTC');
    if (run.rule === 'kernelbench') parts.push('KernelBench’s rule decides');
    $('subtitle').textContent = parts.filter(Boolean).join(' · ');
    $('notes').append(...list(run.notes).filter(Boolean).map((note) => make('p', {class: 'note'}, visible(note))));
    $('licenses').textContent = $('licenses-text').textContent.trim();
  }

  function showSummary() {
    const [all] = run.summaries;
    const figure = (name, value, more) =>
      make('div', {}, make('dt', {}, name), make('dd', {}, value, more ? make('small', {}, more) : null));
    const one = all.fast_p.find((each) => each.p === 1);
    const figures = [
      figure('problems', String(all.problems),
             all.over === 'attempted' ? count(all.samples, 'sample') : `${all.attempted} attempted`),
      figure('correct', String(all.correct), `of ${count(all.problems, 'problem')}`)];
    if (one) {
      figures.push(figure('fast_1', fixed(one.value, 3), interval(one.ci95)));
      figures.push(figure('verified fast_1', fixed(one.verified, 3), interval(one.verified_ci95)));
    }
    figures.push(figure('geometric mean speedup', factor(all.geomean_correct),
                        interval(all.geomean_correct_ci95, 2) || 'nothing timed'));
    const passes = Object.entries(object(all.pass_at_k)).filter(([, value]) => isNumber(value));
    for (const [k, value] of passes.length > 1 ? [passes[0], passes[passes.length - 1]] : passes)
      figures.push(figure(`pass@${k}`, fixed(value, 3), interval(all.pass_at_k_ci95[k])));
    $('figures').append(...figures);

    const backends = run.summaries.filter((group) => group.kind === 'backend').length;
    const groups = run.summaries.filter((group) => group.kind !== 'backend' || backends > 1);
    const right = (value) => make('td', {class: 'right'}, value);
    const headings = ['group', 'problems', 'correct', ...all.fast_p.map((each) => `fast_${round(each.p, 4)}`),
                      ...(one ? ['verified_1'] : []), 'geomean', 'geomean>1'];
    $('groups').append(
      make('thead', {}, make('tr', {}, ...headings.map((heading, i) =>
        make('th', {scope: 'col', class: i ? 'right' : null}, heading)))),
      make('tbody', {}, ...groups.map((group) => make('tr', {},
        make('th', {scope: 'row'}, visible(group.name)), right(String(group.problems)), right(String(group.correct)),
        ...group.fast_p.map((each) => right(fixed(each.value, 3))),
        ...group.fast_p.filter((each) => each.p === 1).map((each) => right(fixed(each.verified, 3))),
        right(factor(group.geomean_correct)), right(factor(group.geomean_correct_and_faster))))));
    let terms = all.over === 'attempted' ? `Over the ${count(all.problems, 'problem')} attempted`
      : `Over ${count(all.problems, 'problem')} (${all.over}), of which ${all.attempted} were attempted`;
    if (all.samples > all.attempted)
      terms += `; of several samples ${{average: 'each counts equally', first: 'the first counts', best: 'the best counts'}[all.sample_rule]}`;
    terms += `. Intervals: 95 %, ${all.bootstrap.resamples} bootstrap resamples of the problems. ` +
      'Verified: no disqualifying flag, and the speedup’s own interval lies over p.';
    if (all.untimed) terms += ` Correct without a speedup: ${count(all.untimed, 'problem')}.`;
    if (all.infrastructure_errors)
      terms += ` Not judged for a fault of the machine: ${count(all.infrastructure_errors, 'sample')}.`;
    $('terms').textContent = terms;
  }

  // ---- charts ------------------------------------------------------------------------------------

  const charts = new Map();  // canvas → chart
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const faint = (name, part = '2e') => colour(name) + part;

  function draw(canvas, label, config) {
    charts.get(canvas)?.destroy();
    canvas.setAttribute('aria-label', label);
    config.options = {
      responsive: true, maintainAspectRatio: false, animation: false, normalized: true,
      ...config.options,
    };
    charts.set(canvas, new Chart(canvas, config));
  }
  function clearCharts(within) {
    for (const [canvas, chart] of charts)
      if (within.contains(canvas)) {
        chart.destroy();
        charts.delete(canvas);
      }
  }

  const axis = (title, more = {}) => ({
    title: {display: true, text: title, color: colour('quiet')}, grid: {color: colour('line'), offset: false},
    ...more, ticks: {color: colour('quiet'), maxRotation: 0, ...more.ticks},
  });
  // A logarithmic axis with ticks at 1, 2, 5 and so on; powers of ten alone where these are many.
  function logAxis(title, low, high, format) {
    const decades = Math.log10(high / low);
    const steps = decades > 7 ? [1] : decades > 2.6 ? [1, 3] : [1, 2, 5];
    const ticks = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); ++e)
      for (const step of steps) {
        const value = step * 10 ** e;
        if (value >= low * 0.999 && value <= high * 1.001) ticks.push({value: Number(value.toPrecision(3))});
      }
    return axis(title, {type: 'logarithmic', min: low, max: high,
                        afterBuildTicks: (scale) => { scale.ticks = ticks; }, ticks: {callback: format}});
  }
  const legend = {position: 'bottom', labels: {
    boxWidth: 14, boxHeight: 3,
    filter: (item, data) => !data.datasets[item.datasetIndex].band,
  }};

  // Vertical lines at values of the x axis, with a word at each.
  const marks = {
    id: 'marks',
    afterDatasetsDraw(chart, _, options) {
      const {ctx, chartArea, scales: {x}} = chart;
      for (const mark of list(options.at)) {
        const at = x.getPixelForValue(mark.value);
        if (!(at >= chartArea.left - 1 && at <= chartArea.right + 1)) continue;
        ctx.save();
        ctx.strokeStyle = ctx.fillStyle = mark.colour;
        ctx.lineWidth = 1.5;
        ctx.setLineDash(mark.dash || []);
        ctx.beginPath();
        ctx.moveTo(at, chartArea.top);
        ctx.lineTo(at, chartArea.bottom);
        ctx.stroke();
        if (mark.to !== undefined) {
          ctx.globalAlpha = 0.14;
          ctx.fillRect(at, chartArea.top, x.getPixelForValue(mark.to) - at, chartArea.bottom - chartArea.top);
        }
        ctx.restore();
      }
    },
  };
  Chart.register(marks);
  Chart.defaults.font.family = getComputedStyle(document.documentElement).fontFamily;

  function showCurve() {
    const curve = run.curves[Number($('curve-group').value) || 0];
    const points = list(curve && curve.points);
    const line = (column) => points.map((point) => ({x: point[0], y: point[column]}));
    const band = (name, low, high) => [
      {band: true, data: line(low), borderWidth: 0, pointRadius: 0, stepped: true, fill: false},
      {band: true, data: line(high), borderWidth: 0, pointRadius: 0, stepped: true, fill: '-1', backgroundColor: faint(name)}];
    const curveOf = (name, label, column, dash) => ({
      label, data: line(column), borderColor: colour(name), backgroundColor: colour(name), borderWidth: 2, borderDash: dash,
      pointRadius: 0, pointHitRadius: 6, stepped: true});
    const at1 = points.reduce((best, point) => Math.abs(point[0] - 1) < Math.abs(best[0] - 1) ? point : best, points[0]);
    draw($('curve'), `fast_p of ${visible(curve.name)}: ${fixed(at1[1], 3)} at p = 1, verified ${fixed(at1[4], 3)}`, {
      type: 'line',
      data: {datasets: [...band('own', 2, 3), curveOf('own', 'fast_p', 1), ...band('verified', 5, 6),
                        curveOf('verified', 'verified', 4, [6, 4])]},
      options: {
        interaction: {mode: 'index', intersect: false},
        scales: {x: logAxis('p, times as fast', points[0][0], points[points.length - 1][0], (v) => round(v, 3)),
                 y: axis('share of problems', {min: 0, max: 1, ticks: {stepSize: 0.2}})},
        plugins: {
          legend: {...legend, labels: {...legend.labels, color: colour('text')}},
          marks: {at: [{value: 1, colour: colour('quiet'), dash: [3, 3]}]},
          tooltip: {
            filter: (item) => !item.dataset.band,
            callbacks: {
              title: (items) => items.length ? `p = ${round(items[0].parsed.x, 3)}` : '',
              label: (item) => {
                const point = points[item.dataIndex];
                const first = item.dataset.label === 'fast_p' ? 1 : 4;
                return ` ${item.dataset.label} ${fixed(point[first], 3)} (${interval([point[first + 1], point[first + 2]])})`;
              },
            },
          },
        },
      },
    });
  }

  // Counts in `bins` equal bins from `low` to `high`; what lies beyond goes to the outermost.
  function histogram(values, low, high, bins) {
    const counts = new Array(bins).fill(0);
    for (const value of values)
      ++counts[Math.min(bins - 1, Math.max(0, Math.floor((value - low) / (high - low) * bins)))];
    return counts.map((y, i) => ({x: low + (i + 0.5) * (high - low) / bins, y}));
  }
  const bars = (label, name, data, part = 'cc') => ({
    label, data, backgroundColor: faint(name, part), borderColor: colour(name), borderWidth: 1,
    barPercentage: 1, categoryPercentage: 1, grouped: false});

  function showSpeedups() {
    const timed = samples.filter((sample) => sample.correct && isNumber(sample.speedup) && sample.speedup > 0);
    const untimed = samples.filter((sample) => sample.correct).length - timed.length;
    $('speedups-note').textContent = `${count(timed.length, 'correct sample')} with a speedup` +
      (untimed ? `, ${untimed} without` : '') + '. Flagged: a flag keeps it from being verified.';
    const logs = timed.map((sample) => Math.log2(sample.speedup));
    const reach = Math.max(1, ...logs.map(Math.abs).map((value) => Math.ceil(value * 2) / 2));
    const low = -Math.max(1, Math.ceil(-Math.min(0, ...logs))), high = Math.max(1, Math.ceil(Math.max(0, ...logs)));
    const perDoubling = reach > 8 ? 1 : reach > 4 ? 2 : 4;
    const bins = (high - low) * perDoubling;
    const of = (clean) => histogram(
      timed.filter((sample) => sample.clean === clean).map((sample) => Math.log2(sample.speedup)), low, high, bins);
    const step = Math.ceil((high - low) / 12);
    const label = (v) => v >= 0 ? `${round(2 ** v, 3)}×` : `1/${round(2 ** -v, 3)}×`;
    draw($('speedups'), `Speedups of ${count(timed.length, 'correct sample')}: ` +
         `${timed.filter((sample) => sample.speedup > 1).length} over 1`, {
      type: 'bar',
      data: {datasets: [bars('no doubt', 'verified', of(true)), bars('flagged', 'reference', of(false))]},
      options: {
        scales: {
          x: axis('speedup', {type: 'linear', stacked: true, min: low, max: high, offset: false,
            afterBuildTicks: (scale) => {
              scale.ticks = [];
              for (let v = Math.ceil(low / step) * step; v <= high; v += step) scale.ticks.push({value: v});
            }, ticks: {callback: label}}),
          y: axis('samples', {stacked: true, beginAtZero: true, grace: '5%', ticks: {precision: 0}}),
        },
        plugins: {
          legend: {...legend, labels: {...legend.labels, boxHeight: 10, color: colour('text')}},
          marks: {at: [{value: 0, colour: colour('quiet'), dash: [3, 3]}]},
          tooltip: {callbacks: {title: (items) => {
            const half = 0.5 / perDoubling, at = items[0].parsed.x;
            return `${factor(2 ** (at - half))} to ${factor(2 ** (at + half))}`;
          }}},
        },
      },
    });
  }

  // ---- the table ---------------------------------------------------------------------------------

  const compareText = (a, b) => a < b ? -1 : a > b ? 1 : 0;
  const columns = [
    {name: 'problem', value: (s) => s.index, compare: (a, b) => a - b},
    {name: 'name', value: (s) => s.name.toLowerCase(), compare: compareText},
    {name: 'sample', value: (s) => s.sample, compare: (a, b) => a - b, right: true},
    {name: 'backend', value: (s) => s.backend, compare: compareText},
    {name: 'verdict', value: (s) => s.verdict, compare: compareText},
    {name: 'speedup', value: (s) => number(s.speedup), compare: (a, b) => a - b, right: true, large: true},
    {name: '95 % interval', value: (s) => s.ci95 ? s.ci95[1] - s.ci95[0] : null, compare: (a, b) => a - b, right: true},
    {name: 'time', value: (s) => number(s.time_us), compare: (a, b) => a - b, right: true},
    {name: 'flags', value: (s) => s.flags.length ? s.flags.join(' ') : null, compare: compareText},
  ];
  const hasNames = samples.some((sample) => sample.name);
  const shownColumns = columns.filter((column) => column.name !== 'name' || hasNames);
  const body = $('table').tBodies[0];
  const rows = [];    // by index
  let order = [];     // indices that are shown, as they are shown
  let sorting = {column: columns[0], down: false};
  let current = null; // the index whose link Tab reaches

  function makeRow(sample) {
    const link = make('a', {href: `#${encodeURI(sample.key)}`, tabindex: -1}, visible(sample.problem));
    const cell = {
      problem: () => make('td', {title: visible(sample.problem)}, link),
      name: () => make('td', {class: 'words'}, visible(sample.name)),
      sample: () => make('td', {class: 'right'}, String(sample.sample)),
      backend: () => make('td', {}, visible(sample.backend) || '–'),
      verdict: () => make('td', {}, verdictTag(sample.verdict)),
      speedup: () => make('td', {class: 'right'}, factor(sample.speedup)),
      '95 % interval': () => make('td', {class: 'right'}, interval(sample.ci95)),
      time: () => make('td', {class: 'right'}, time(sample.time_us)),
      flags: () => make('td', {class: 'words'}, ...sample.flags.map(flagTag)),
    };
    const row = make('tr', {}, ...shownColumns.map((column) => cell[column.name]()));
    row.dataset.index = sample.index;
    rows[sample.index] = {row, link, words: [
      sample.problem, sample.name, `sample ${sample.sample}`, sample.backend, sample.verdict, ...sample.flags,
      sample.message].join('\n').toLowerCase()};
    return row;
  }

  function makeTable() {
    const head = $('table').tHead.rows[0];
    for (const column of shownColumns) {
      const button = make('button', {type: 'button'}, column.name);
      button.addEventListener('click', () => {
        sorting = {column, down: sorting.column === column ? !sorting.down : Boolean(column.large)};
        arrange();
      });
      column.heading = make('th', {scope: 'col', class: column.right ? 'right' : null}, button);
      head.append(column.heading);
    }
    samples.forEach(makeRow);

    const options = (id, all, values) => $(id).append(
      make('option', {value: ''}, all), ...values.map((value) => make('option', {value: `=${value}`}, visible(value))));
    const distinct = (of) => [...new Set(samples.flatMap(of))].filter((value) => value !== '' && value !== 0).sort(
      (a, b) => typeof a === 'number' ? a - b : compareText(a, b));
    options('filter-level', 'all', distinct((s) => s.level));
    options('filter-backend', 'all', distinct((s) => s.backend));
    options('filter-verdict', 'all', distinct((s) => s.verdict));
    options('filter-flag', 'all', distinct((s) => s.flags));
    $('filter-flag').options[0].after(make('option', {value: 'any'}, 'any flag'), make('option', {value: 'none'}, 'no flag'));
  }

  function passes(sample) {
    const chosen = (id, value) => $(id).value === '' || $(id).value === `=${value}`;
    const flag = $('filter-flag').value;
    return chosen('filter-level', sample.level) && chosen('filter-backend', sample.backend) &&
      chosen('filter-verdict', sample.verdict) &&
      (flag === '' || (flag === 'any' ? sample.flags.length > 0 : flag === 'none' ? sample.flags.length === 0
        : sample.flags.includes(flag.slice(1)))) &&
      $('search').value.toLowerCase().split(/\s+/).every((word) => rows[sample.index].words.includes(word));
  }

  function setCurrent(index) {
    if (current !== null) rows[current].link.tabIndex = -1;
    current = index;
    if (current !== null) rows[current].link.tabIndex = 0;
  }

  // Filters and sorts. What has no value comes last, whichever way.
  function arrange() {
    const {column, down} = sorting;
    const chosen = samples.filter(passes).map((sample) => [column.value(sample), sample.index]);
    chosen.sort(([a, i], [b, j]) => {
      if (a === null || b === null) return a === b ? i - j : a === null ? 1 : -1;
      return (down ? column.compare(b, a) : column.compare(a, b)) || i - j;
    });
    order = chosen.map(([, index]) => index);
    body.replaceChildren(...order.map((index) => rows[index].row));
    for (const each of shownColumns) {
      if (each === column) each.heading.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      else each.heading.removeAttribute('aria-sort');
    }
    $('none').hidden = order.length > 0;
    $('count').textContent = order.length === samples.length ? count(samples.length, 'sample')
      : `${order.length} of ${count(samples.length, 'sample')}`;
    setCurrent(order.includes(current) ? current : order.length ? order[0] : null);
    updateSteps();
  }

  function move(event) {
    const at = order.indexOf(current);
    const to = {ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: order.length - 1,
                PageDown: at + 10, PageUp: at - 10}[event.key];
    if (to === undefined || at < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    setCurrent(order[Math.min(order.length - 1, Math.max(0, to))]);
    rows[current].link.focus();
  }

  function listenToTable() {
    $('filters').addEventListener('input', arrange);
    $('filters').addEventListener('submit', (event) => event.preventDefault());
    $('filters').addEventListener('reset', () => setTimeout(arrange));
    body.addEventListener('keydown', move);
    body.addEventListener('focusin', (event) => {
      const row = event.target.closest('tr');
      if (row) setCurrent(Number(row.dataset.index));
    });
    body.addEventListener('click', (event) => {
      const row = event.target.closest('tr');
      // The link does it itself; and who selects text does not want to leave.
      if (!row || event.target.closest('a') || String(getSelection())) return;
      setCurrent(Number(row.dataset.index));
      location.hash = rows[current].link.hash;
    });
    document.addEventListener('keydown', (event) => {
      if (event.key === 'Escape' && !$('panel').hidden) closePanel();
      const typing = event.target instanceof Element && event.target.closest('input, select, textarea');
      if (event.key === '/' && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        if (!$('panel').hidden) closePanel();
        $('search').focus();
      }
    });
  }

  // ---- source and diff ---------------------------------------------------------------------------

  const languageOf = (file) => /\.py$/.test(file) ? 'python' : 'cpp';

  // A list of lines, each a list of nodes. Prism's tokens are a tree with text at its leaves; should they
  // together not be the text that was given, it is shown without colours.
  function highlighted(source, language) {
    const plain = () => source.split('\n').map((line) => [line]);
    if (source.length > HIGHLIGHT_MOST) return plain();
    const lines = [[]];
    let seen = '';
    const put = (token, type) => {
      if (Array.isArray(token)) {
        token.forEach((one) => put(one, type));
      } else if (typeof token !== 'string') {
        put(token.content, token.type);
      } else {
        seen += token;
        token.split('\n').forEach((part, i) => {
          if (i > 0) lines.push([]);
          if (part !== '') lines[lines.length - 1].push(type ? make('span', {class: `token-${type}`}, part) : part);
        });
      }
    };
    put(Prism.tokenize(source, Prism.languages[language]), null);
    return seen === source ? lines : plain();
  }

  const tidy = (source) => visible(text(source)).replace(/\n$/, '');

  function sourceBox(source) {
    return make('pre', {class: 'box code', tabindex: 0, 'aria-label': `source of ${visible(source.file)}`},
      ...highlighted(tidy(source.text), languageOf(source.file)).map((nodes) => make('span', {class: 'line'}, ...nodes)));
  }

  // Myers' greedy comparison: a list of [sign, line]. Null where the two have too little in common.
  function compareLines(a, b) {
    let start = 0, endA = a.length, endB = b.length;
    while (start < endA && start < endB && a[start] === b[start]) ++start;
    while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) --endA, --endB;
    const n = endA - start, m = endB - start;
    const furthest = new Map([[1, 0]]);
    const history = [];
    let found = n + m === 0 ? 0 : -1;
    for (let d = 0; found < 0 && d <= Math.min(n + m, DIFF_MOST); ++d) {
      history.push(new Map(furthest));
      for (let k = -d; k <= d; k += 2) {
        let x = k === -d || (k !== d && furthest.get(k - 1) < furthest.get(k + 1)) ? furthest.get(k + 1)
          : furthest.get(k - 1) + 1;
        while (x < n && x - k < m && a[start + x] === b[start + x - k]) ++x;
        furthest.set(k, x);
        if (x >= n && x - k >= m) {
          found = d;
          break;
        }
      }
    }
    if (found < 0) return null;
    const middle = [];
    let x = n, y = m;
    for (let d = found; d > 0; --d) {
      const before = history[d], k = x - y;
      const from = k === -d || (k !== d && before.get(k - 1) < before.get(k + 1)) ? k + 1 : k - 1;
      const fromX = before.get(from), fromY = fromX - from;
      while (x > fromX && y > fromY) middle.push([' ', a[start + --x]]), --y;
      if (x > fromX) middle.push(['-', a[start + --x]]);
      else middle.push(['+', b[start + --y]]);
    }
    while (x > 0) middle.push([' ', a[start + --x]]);
    return [...a.slice(0, start).map((line) => [' ', line]), ...middle.reverse(),
            ...a.slice(endA).map((line) => [' ', line])];
  }

  function diffBox(before, after) {
    const diff = compareLines(tidy(before.text).split('\n'), tidy(after.text).split('\n'));
    if (!diff) return make('p', {class: 'quiet'}, 'The two have too little in common to be compared line by line.');
    if (diff.every(([sign]) => sign === ' ')) return make('p', {class: 'quiet'}, 'The two are the same.');
    const near = diff.map(() => false);
    diff.forEach(([sign], i) => {
      if (sign !== ' ') near.fill(true, Math.max(0, i - DIFF_CONTEXT), i + DIFF_CONTEXT + 1);
    });
    const lines = [];
    for (let i = 0; i < diff.length; ++i) {
      if (near[i]) {
        const [sign, line] = diff[i];
        const kind = {'+': 'line added', '-': 'line removed', ' ': 'line'}[sign];
        lines.push(make('span', {class: kind, 'data-sign': sign}, line));
        continue;
      }
      const from = i;
      while (i + 1 < diff.length && !near[i + 1]) ++i;
      lines.push(make('span', {class: 'line gap', 'data-sign': '⋯'}, `${count(i - from + 1, 'equal line')}`));
    }
    return make('pre', {class: 'box code diff', tabindex: 0, 'aria-label': 'difference to the previous turn'}, ...lines);
  }

  // ---- one sample --------------------------------------------------------------------------------

  const pairs = (entries) => make('dl', {class: 'pairs'}, ...entries.filter(([, value]) => value !== null && value !== '')
    .flatMap(([name, value]) => [make('dt', {}, name), make('dd', {}, value)]));

  function leadOf(sample, result) {
    const lead = make('p', {class: 'lead'}, verdictTag(sample.verdict), ' ');
    if (isNumber(sample.speedup)) {
      lead.append(make('strong', {}, `${sample.speedup.toFixed(3)}×`));
      const range = interval(sample.ci95);
      if (range) lead.append(` (95 % interval ${range})`);
    }
    const ours = text(result.verdict);
    if (ours && ours !== sample.verdict) lead.append(' its own verdict: ', verdictTag(ours));
    const device = object(result.device_info);
    const parts = [
      ['file', visible(text(result.candidate))], ['backend', visible(sample.backend)],
      ['device', visible([text(result.device), text(device.name)].filter(Boolean).join(', '))],
      ['conditions', visible([text(result.precision), text(result.size) && `size ${result.size}`,
                              text(result.timer) && `timer ${result.timer}`].filter(Boolean).join(', '))],
      ['KernelBench’s rule', typeof object(result.public).correct === 'boolean'
        ? (result.public.correct ? 'correct' : 'not correct') : null]];
    const flags = sample.flags.map((flag) => make('p', {}, flagTag(flag), ' ', visible(meaningOf(flag))));
    return [lead, ...flags, pairs(parts)];
  }

  function logOf(sample, result) {
    const message = text(result.message);
    if (!message.trim()) return [];
    const title = result.verdict === 'compile_error' ? 'Compiler log' : 'Message';
    return [make('h3', {}, title),
            make('pre', {class: 'box log', tabindex: 0, 'aria-label': title}, visible(message))];
  }

  // Times of one call, of the turns with the most calls: the overhead of a turn is known for them.
  function callTimes(result) {
    const turns = list(result.turns).filter((turn) => list(turn).length === 3 && turn.every(isNumber) && turn[0] > 0);
    const calls = Math.max(0, ...turns.map((turn) => turn[0]));
    const overhead = object(result.overhead_us);
    return turns.filter((turn) => turn[0] === calls).map((turn) => ({
      reference: (turn[1] - (number(overhead.reference) || 0)) / calls,
      candidate: (turn[2] - (number(overhead.candidate) || 0)) / calls,
    })).filter((pair) => pair.reference > 0 && pair.candidate > 0);
  }

  // Where a histogram of `values` begins and ends: four quartile ranges around the middle half at most.
  function span(values) {
    const sorted = [...values].sort((a, b) => a - b);
    const at = (part) => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];
    const reach = 4 * Math.max(at(0.75) - at(0.25), Math.abs(at(0.5)) * 0.002);
    const low = Math.max(sorted[0], at(0.25) - reach), high = Math.min(sorted[sorted.length - 1], at(0.75) + reach);
    const room = Math.max((high - low) * 0.02, Math.abs(high) * 1e-4, 1e-9);
    return {low: low - room, high: high + room, beyond: sorted.filter((v) => v < low || v > high).length};
  }

  function chartFigure(title, note, kind = 'chart') {
    const canvas = make('canvas', {role: 'img'});
    const figure = make('figure', {}, make('figcaption', {}, title), make('div', {class: kind}, canvas),
                        note ? make('p', {class: 'quiet'}, note) : null);
    return {figure, canvas};
  }

  function histogramFigure(title, axisTitle, what, series, markAt, format) {
    const all = series.flatMap((one) => one.values);
    const {low, high, beyond} = span(all);
    const bins = Math.min(40, Math.max(10, Math.round(2 * Math.sqrt(series[0].values.length) * 1.5)));
    const {figure, canvas} = chartFigure(title,
      beyond ? `${beyond} of ${all.length} lie beyond the axis, and are in the outermost bars.` : '');
    const label = `${title}: ` + series.map((one) => `${one.label}, ${count(one.values.length, what)}`).join('; ');
    return {figure, paint: () => draw(canvas, label, {
      type: 'bar',
      data: {datasets: series.map((one) => bars(one.label, one.colour, histogram(one.values, low, high, bins), '88'))},
      options: {
        scales: {x: axis(axisTitle, {type: 'linear', min: low, max: high, offset: false,
                                     ticks: {maxTicksLimit: 7, callback: format, includeBounds: false}}),
                 y: axis(`${what}s`, {beginAtZero: true, ticks: {precision: 0, maxTicksLimit: 6}})},
        plugins: {
          legend: {...legend, display: series.length > 1, labels: {...legend.labels, boxHeight: 10, color: colour('text')}},
          marks: {at: markAt()},
          tooltip: {callbacks: {title: (items) => format(items[0].parsed.x)}},
        },
      },
    })};
  }

  function rooflineFigure(roofs, result) {
    const intensity = number(roofs.intensity), memory = number(roofs.memory_bytes_per_s);
    if (!(intensity > 0) || !(memory > 0)) return null;
    const points = [['this kernel', 'own', number(result.time_us)], ['reference', 'reference', number(result.reference_time_us)]]
      .filter(([, , us]) => us > 0).map(([label, name, us]) => ({label, name, x: intensity, y: roofs.operations / us * 1e6}));
    if (!points.length) return null;
    const ceilings = list(roofs.ceilings).filter((ceiling) => ceiling.operations_per_s > 0);
    const ridges = ceilings.map((ceiling) => ceiling.operations_per_s / memory);
    const low = 10 ** Math.floor(Math.log10(Math.min(intensity, ...ridges) / 3));
    const high = 10 ** Math.ceil(Math.log10(Math.max(intensity, ...ridges) * 3));
    const roofAt = (x) => Math.min(memory * x, ...ceilings.map((ceiling) => ceiling.operations_per_s));
    const top = Math.max(...ceilings.map((ceiling) => ceiling.operations_per_s), ceilings.length ? 0 : memory * high,
                         ...points.map((point) => point.y));
    const bottom = Math.min(memory * low, ...points.map((point) => point.y));
    const peak = Math.max(0, ...ceilings.map((ceiling) => ceiling.operations_per_s)) || memory * high;
    const {figure, canvas} = chartFigure('Roofline',
      `${unit(roofs.operations, 'op')} and at least ${unit(roofs.bytes, 'B')} a call.` +
      (ceilings.length ? '' : ' The rate of this device’s arithmetic is not known.'), 'chart tall');
    const line = (label, name, from, to, y, dash) => ({label, showLine: true, pointRadius: 0, borderWidth: 1.5, borderDash: dash,
      borderColor: colour(name), backgroundColor: colour(name), data: [{x: from, y: y(from)}, {x: to, y: y(to)}]});
    const label = `Roofline: ${round(intensity, 3)} operations a byte; ` + points.map((point) =>
      `${point.label} ${unit(point.y, 'op/s')}, ${round(100 * point.y / roofAt(point.x), 3)} % of the roof`).join('; ');
    return {figure, paint: () => draw(canvas, label, {
      type: 'scatter',
      data: {datasets: [
        ...points.map((point) => ({label: point.label, data: [{x: point.x, y: point.y}], pointStyle: 'circle',
          ...(point.name === 'own' ? {pointRadius: 5, pointHoverRadius: 6, backgroundColor: colour('own'), borderColor: colour('card')}
            : {pointRadius: 8, pointHoverRadius: 9, borderWidth: 2, backgroundColor: 'transparent', borderColor: colour('reference')})})),
        line('memory', 'quiet', low, Math.min(high, peak / memory), (x) => memory * x),
        ...ceilings.map((ceiling, i) => line(ceiling.name, 'quiet', ceiling.operations_per_s / memory, high,
                                            () => ceiling.operations_per_s, [[], [6, 3], [2, 3]][i % 3]))]},
      options: {
        scales: {x: logAxis('op / byte', low, high, (v) => round(v, 3)),
                 y: logAxis('op / s', 10 ** Math.floor(Math.log10(bottom)), 10 ** Math.ceil(Math.log10(top * 1.2)),
                            (v) => unit(v, ''))},
        plugins: {
          legend: {...legend, labels: {...legend.labels, color: colour('text'), generateLabels: (chart) =>
            Chart.defaults.plugins.legend.labels.generateLabels(chart).map((item) => item.datasetIndex < points.length
              ? {...item, fillStyle: colour(points[item.datasetIndex].name), strokeStyle: colour(points[item.datasetIndex].name)} : item)}},
          tooltip: {callbacks: {label: (item) => ` ${item.dataset.label}: ${unit(item.parsed.y, 'op/s')}`}},
        },
      },
    })};
  }

  function timingOf(sample, result, roofs) {
    if (!isNumber(sample.time_us) && !isNumber(sample.reference_time_us)) return {nodes: [], paints: []};
    const light = number(result.speed_of_light_us);
    const bytes = number(roofs.bytes);
    const telemetry = list(result.telemetry).map(object);
    const range = (name, word) => {
      const values = telemetry.map((reading) => number(reading[name])).filter((value) => value !== null);
      if (!values.length) return null;
      const low = Math.min(...values), high = Math.max(...values);
      return low === high ? `${round(low, 4)} ${word}` : `${round(low, 4)} to ${round(high, 4)} ${word}`;
    };
    const throttled = [...new Set(telemetry.flatMap((reading) => list(reading.throttle_reasons)))];
    let turns = '';
    if (isNumber(result.pairs)) turns = `${result.pairs} pairs of ${count(number(result.calls_per_turn) || 1, 'call')}`;
    const bandwidth = (us) => isNumber(us) && bytes ? unit(bytes / us * 1e6, 'B/s') : '';
    const facts = pairs([
      ['time of a call', time(sample.time_us)], ['reference', time(sample.reference_time_us)],
      ['relied on', isNumber(result.speedup_at_least) ? `${factor(result.speedup_at_least)}, in verified scores` : null],
      ['reference alone', isNumber(result.solo_time_us) ? time(result.solo_time_us) : null], ['measured', turns],
      ['speed of light', light ? `${time(light)}` +
        (isNumber(sample.time_us) ? `: this kernel takes ${factor(sample.time_us / light)} that` : '') : null],
      ['memory traffic', bytes && isNumber(sample.time_us)
        ? `at least ${unit(bytes, 'B')} a call: ${bandwidth(sample.time_us)}` +
          (isNumber(roofs.memory_bytes_per_s) ? ` of ${unit(roofs.memory_bytes_per_s, 'B/s')} (${visible(roofs.memory)})` : '')
        : null],
      ['SM clock', range('sm_mhz', 'MHz')], ['power', range('power_w', 'W')], ['temperature', range('temperature_c', '°C')],
      ['throttled by', throttled.length ? visible(throttled.join(', ')) : null]]);
    const figures = [];
    const times = callTimes(result);
    if (times.length > 1) {
      figures.push(histogramFigure('Speedup of each pair', 'reference / this kernel', 'pair',
        [{label: 'all', colour: 'own', values: times.map((pair) => pair.reference / pair.candidate)}],
        () => [...(sample.ci95 ? [{value: sample.ci95[0], to: sample.ci95[1], colour: colour('verified'), dash: [1, 3]}] : []),
               ...(isNumber(sample.speedup) ? [{value: sample.speedup, colour: colour('verified')}] : []),
               {value: 1, colour: colour('quiet'), dash: [3, 3]}],
        (v) => round(v, 3)));
      figures.push(histogramFigure('Time of a call, in each turn', 'time', 'turn',
        [{label: 'this kernel', colour: 'own', values: times.map((pair) => pair.candidate)},
         {label: 'reference', colour: 'reference', values: times.map((pair) => pair.reference)}],
        () => [], (v) => v < 1000 ? `${round(v, 3)} µs` : v < 1e6 ? `${round(v / 1000, 3)} ms` : `${round(v / 1e6, 3)} s`));
    }
    const roofline = rooflineFigure(roofs, result);
    if (roofline) figures.push(roofline);
    const unknown = !roofline && bytes && !isNumber(roofs.operations)
      ? make('p', {class: 'quiet'}, 'How many operations a call takes was not counted, so there is no roofline.') : null;
    return {
      nodes: [make('h3', {}, 'Timing'), facts,
              figures.length ? make('div', {class: 'small-charts'}, ...figures.map((each) => each.figure)) : null, unknown],
      paints: figures.map((each) => each.paint),
    };
  }

  function errorsOf(detail, result) {
    const trials = list(result.trials).map(object);
    const tolerance = object(result.tolerance);
    const facts = [
      ['largest absolute', isNumber(result.max_abs_error) ? small(result.max_abs_error) : null],
      ['largest relative', isNumber(result.max_rel_error) ? small(result.max_rel_error) : null],
      ['from float64, in norm', isNumber(result.norm_error_vs_truth) ? small(result.norm_error_vs_truth) +
        (isNumber(result.reference_norm_error_vs_truth)
          ? `; the reference ${small(result.reference_norm_error_vs_truth)}` : '') : null],
      ['tolerance', isNumber(tolerance.atol) && (tolerance.atol > 0 || tolerance.rtol > 0)
        ? `absolute ${small(tolerance.atol)}, relative ${small(number(tolerance.rtol))}` +
          (isNumber(tolerance.norm_rtol) ? `, in norm ${small(tolerance.norm_rtol)}` : '') +
          (tolerance.widened > 1 ? `; widened ${round(tolerance.widened, 3)} times for the reference’s own error` : '') : null],
    ].filter(([, value]) => value !== null);
    if (!trials.length && !facts.length) return [];
    const table = !trials.length ? null : make('div', {class: 'scroll'}, make('table', {},
      make('thead', {}, make('tr', {}, ...['trial', 'inputs', 'seed', 'outcome', 'largest absolute error'].map((name) =>
        make('th', {scope: 'col'}, name)))),
      make('tbody', {}, ...trials.map((trial, i) => make('tr', {},
        make('td', {}, String(i + 1)), make('td', {}, visible(text(trial.kind))),
        make('td', {}, visible(text(list(detail.seeds)[i])) || '–'),
        make('td', {}, trial.counted === false ? make('span', {class: 'tag'}, 'not counted')
          : make('span', {class: `tag ${trial.passed ? 'good' : 'bad'}`}, trial.passed ? 'passed' : 'failed')),
        make('td', {}, trial.counted === false ? '–' : small(number(trial.max_abs_error))))))));
    return [make('h3', {}, 'Errors'), pairs(facts), table];
  }

  function phasesOf(result) {
    const phases = Object.entries(object(result.phases_ms)).filter(([, ms]) => isNumber(ms) && ms >= 0);
    if (!phases.length) return [];
    const total = phases.find(([name]) => name === 'evaluation');
    const most = Math.max(...phases.map(([, ms]) => ms), 1e-9);
    phases.sort((a, b) => (b === total) - (a === total) || b[1] - a[1]);
    return [make('h3', {}, 'Phases of the evaluation'), ...phases.map(([name, ms]) => {
      const bar = make('div', {});
      bar.style.width = `${100 * ms / most}%`;
      return make('div', {class: 'phase'}, make('span', {}, visible(name)), make('div', {class: 'track'}, bar),
                  make('span', {class: 'right'}, `${ms.toFixed(ms < 10 ? 1 : 0)} ms`));
    })];
  }

  function sourcesOf(detail) {
    const nodes = [make('h3', {}, 'Source')];
    if (text(detail.source_note)) nodes.push(make('p', {class: 'quiet'}, visible(detail.source_note)));
    const source = detail.source ? {file: text(detail.source.file), text: text(detail.source.text)} : null;
    if (source) nodes.push(make('p', {class: 'quiet'}, visible(source.file)), sourceBox(source));
    const turns = [...list(detail.earlier), ...(source ? [source] : [])];
    for (let i = turns.length - 1; i > 0; --i)
      nodes.push(make('h3', {}, i === turns.length - 1 ? 'Difference to the previous turn' : `Turn ${i} to turn ${i + 1}`),
                 make('p', {class: 'quiet'}, `${visible(turns[i - 1].file)} → ${visible(turns[i].file)}`),
                 diffBox(turns[i - 1], turns[i]));
    return nodes;
  }

  let openIndex = null;
  let paints = [];

  function openSample(index) {
    const sample = samples[index];
    const detail = JSON.parse($(`sample-${index}`).textContent);
    const result = object(detail.result);
    const known = Object.keys(result).length > 0;
    clearCharts($('panel'));
    if (openIndex !== null) rows[openIndex].row.removeAttribute('aria-current');
    openIndex = index;
    rows[index].row.setAttribute('aria-current', 'true');
    setCurrent(index);
    $('panel-title').textContent =
      `${visible(sample.problem)}${sample.name ? ` ${visible(sample.name)}` : ''}, sample ${sample.sample}`;
    const timing = timingOf(sample, result, object(detail.roofline));
    $('panel-body').replaceChildren(...[
      ...leadOf(sample, result),
      known ? null : make('p', {class: 'quiet'}, 'Of this sample only the score is known.'),
      ...logOf(sample, result), ...timing.nodes, ...errorsOf(detail, result), ...phasesOf(result), ...sourcesOf(detail),
    ].filter(Boolean));
    $('panel').hidden = false;
    $('panel-body').scrollTop = 0;
    paints = timing.paints;
    for (const paint of paints) paint();
    updateSteps();
    $('panel-title').focus({preventScroll: true});
  }

  function closePanel() {
    clearCharts($('panel'));
    paints = [];
    $('panel').hidden = true;
    $('panel-body').replaceChildren();
    const index = openIndex;
    openIndex = null;
    rows[index].row.removeAttribute('aria-current');
    if (location.hash) history.replaceState(null, '', location.href.split('#')[0]);
    // Its row may have been filtered away meanwhile.
    (order.includes(index) ? rows[index].link : $('search')).focus();
  }

  const neighbour = (step) => order[order.indexOf(openIndex) + step];
  function updateSteps() {
    const listed = openIndex !== null && order.includes(openIndex);
    $('previous').disabled = !listed || neighbour(-1) === undefined;
    $('next').disabled = !listed || neighbour(1) === undefined;
  }
  function step(by) {
    const index = neighbour(by);
    if (index !== undefined) location.hash = rows[index].link.hash;
  }

  function followHash() {
    let key;
    try {
      key = decodeURI(location.hash.slice(1));
    } catch (error) {
      return;
    }
    if (indexOf.has(key)) openSample(indexOf.get(key));
    else if (openIndex !== null && key === '') closePanel();
  }

  // ---- light and dark ----------------------------------------------------------------------------

  const darkSystem = matchMedia('(prefers-color-scheme: dark)');
  const themes = ['system', 'light', 'dark'];
  const storageName = 'kernelbench-theme';
  let theme = 'system';

  function showTheme() {
    const dark = theme === 'dark' || (theme === 'system' && darkSystem.matches);
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
    $('theme').textContent = `Theme: ${theme}`;
    showCurve();
    showSpeedups();
    for (const paint of paints) paint();
  }

  function startTheme() {
    // A page that was opened from a disk may have no storage.
    try {
      const kept = localStorage.getItem(storageName);
      if (themes.includes(kept)) theme = kept;
    } catch (error) { /* it stays the system's */ }
    $('theme').addEventListener('click', () => {
      theme = themes[(themes.indexOf(theme) + 1) % themes.length];
      try {
        localStorage.setItem(storageName, theme);
      } catch (error) { /* for this time only */ }
      showTheme();
    });
    darkSystem.addEventListener('change', showTheme);
    showTheme();
  }

  showHeading();
  showSummary();
  $('curve-group').append(...list(run.curves).map((curve, i) => make('option', {value: i}, visible(curve.name))));
  $('curve-group').addEventListener('change', showCurve);
  startTheme();
  makeTable();
  listenToTable();
  arrange();
  $('close').addEventListener('click', closePanel);
  $('previous').addEventListener('click', () => step(-1));
  $('next').addEventListener('click', () => step(1));
  addEventListener('hashchange', followHash);
  followHash();
})();
