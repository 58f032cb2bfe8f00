"""Words for made documents in the eight languages, Serbian in both scripts."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Words:
    """`parts`: six headings; `table`: head and rows; `law`: chapter, article."""

    language: str
    title: str
    running: str
    parts: tuple[str, ...]
    sentences: tuple[str, ...]
    table: tuple[tuple[str, ...], ...]
    items: tuple[str, ...]
    footnote: str
    law: tuple[str, str]


def _table(head: str, *rows: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(row.split(" | ")) for row in (head, *rows))


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.strip().splitlines())


WORDS: tuple[Words, ...] = (
    Words(
        "en", "Report on the town archive", "Town archive: yearly report",
        ("Purpose and scope", "Holdings", "Storage rooms", "Climate", "Reading room", "Outlook"),
        _lines("""
            The archive keeps the papers of the council since the first written charter.
            Visitors order boxes one day in advance and read them under supervision.
            Every box carries a label with its shelf, its year and the name of the donor.
            Damp walls in the northern cellar were repaired before the autumn rains.
            Volunteers copied four thousand letters and described each in a short note.
            The oldest map shows a mill that no longer stands near the bridge.
            Loans to other museums need the signature of two members of the board.
            Fees for copies have not changed for seven years.
        """),
        _table("Room | Boxes | Area | Opened", "Cellar | 412 | 85.5 | 2011",
               "Attic | 96 | 40.0 | 2018", "Annex | 1 205 | 210.7 | 2003"),
        ("Order the boxes", "Sign the visitor book", "Leave bags at the desk", "Use pencils only"),
        "Counted on the last working day of December by two clerks.",
        ("Chapter", "Article"),
    ),
    Words(
        "de", "Bericht über das Stadtarchiv", "Stadtarchiv: Jahresbericht",
        ("Zweck und Umfang", "Bestände", "Lagerräume", "Raumklima", "Lesesaal", "Ausblick"),
        _lines("""
            Das Archiv bewahrt die Schriften des Rates seit der ersten Urkunde auf.
            Besucher bestellen Schachteln einen Tag vorher und lesen sie unter Aufsicht.
            Jede Schachtel trägt ein Schild mit Regal, Jahr und dem Namen des Stifters.
            Feuchte Wände im Nordkeller wurden vor dem Herbstregen ausgebessert.
            Freiwillige schrieben viertausend Briefe ab und beschrieben jeden kurz.
            Die älteste Karte zeigt eine Mühle, die nicht mehr an der Brücke steht.
            Leihgaben an andere Häuser brauchen zwei Unterschriften des Vorstands.
            Die Gebühren für Abschriften sind seit sieben Jahren gleich geblieben.
        """),
        _table("Raum | Schachteln | Fläche | Eröffnet", "Keller | 412 | 85,5 | 2011",
               "Dachboden | 96 | 40,0 | 2018", "Anbau | 1 205 | 210,7 | 2003"),
        ("Schachteln bestellen", "Besucherbuch unterschreiben", "Taschen abgeben",
         "Nur Bleistifte benutzen"),
        "Gezählt am letzten Arbeitstag im Dezember von zwei Angestellten.",
        ("Kapitel", "Artikel"),
    ),
    Words(
        "ru", "Отчёт о городском архиве", "Городской архив: годовой отчёт",
        ("Цель и охват", "Фонды", "Хранилища", "Микроклимат", "Читальный зал", "Планы"),
        _lines("""
            Архив хранит бумаги городского совета со времени первой грамоты.
            Посетители заказывают коробки за день и читают их под наблюдением.
            На каждой коробке указаны полка, год и имя дарителя.
            Сырые стены северного подвала отремонтировали до осенних дождей.
            Добровольцы переписали четыре тысячи писем и кратко описали каждое.
            На самой старой карте видна мельница, которой у моста больше нет.
            Для выдачи вещей другим музеям нужны подписи двух членов правления.
            Плата за копии не менялась уже семь лет.
        """),
        _table("Помещение | Коробки | Площадь | Открыто", "Подвал | 412 | 85,5 | 2011",
               "Чердак | 96 | 40,0 | 2018", "Пристройка | 1 205 | 210,7 | 2003"),
        ("Заказать коробки", "Расписаться в книге", "Оставить сумки у входа",
         "Писать только карандашом"),
        "Подсчитано в последний рабочий день декабря двумя служащими.",
        ("Глава", "Статья"),
    ),
    Words(
        "bg", "Доклад за градския архив", "Градски архив: годишен доклад",
        ("Цел и обхват", "Фондове", "Хранилища", "Микроклимат", "Читалня", "Перспективи"),
        _lines("""
            Архивът пази книжата на общинския съвет от първата грамота насам.
            Посетителите поръчват кутиите един ден по-рано и ги четат под надзор.
            Върху всяка кутия са написани рафтът, годината и името на дарителя.
            Влажните стени в северното мазе бяха поправени преди есенните дъждове.
            Доброволци преписаха четири хиляди писма и описаха накратко всяко от тях.
            Най-старата карта показва воденица, която вече не стои до моста.
            За заем на други музеи са нужни подписите на двама членове на управата.
            Таксите за преписи не са променяни от седем години.
        """),
        _table("Помещение | Кутии | Площ | Открито", "Мазе | 412 | 85,5 | 2011",
               "Таван | 96 | 40,0 | 2018", "Пристройка | 1 205 | 210,7 | 2003"),
        ("Поръчайте кутиите", "Подпишете се в книгата", "Оставете чантите на входа",
         "Ползвайте само моливи"),
        "Преброено в последния работен ден на декември от двама служители.",
        ("Глава", "Член"),
    ),
    Words(
        "sr-Cyrl", "Извештај о градском архиву", "Градски архив: годишњи извештај",
        ("Сврха и обим", "Фондови", "Складишта", "Услови чувања", "Читаоница", "Изгледи"),
        _lines("""
            Архив чува списе градског већа од прве сачуване повеље.
            Посетиоци наручују кутије дан раније и читају их под надзором.
            На свакој кутији стоје полица, година и име дародавца.
            Влажни зидови у северном подруму поправљени су пре јесењих киша.
            Добровољци су преписали четири хиљаде писама и укратко описали свако.
            Најстарија мапа приказује млин који више не стоји поред моста.
            За позајмицу другим музејима потребни су потписи два члана управе.
            Цене преписа се нису мењале већ седам година.
        """),
        _table("Просторија | Кутије | Површина | Отворено", "Подрум | 412 | 85,5 | 2011",
               "Таван | 96 | 40,0 | 2018", "Доградња | 1 205 | 210,7 | 2003"),
        ("Наручити кутије", "Потписати се у књигу", "Оставити торбе на улазу",
         "Користити само оловке"),
        "Пребројала су два службеника последњег радног дана у децембру.",
        ("Поглавље", "Члан"),
    ),
    Words(
        "sr-Latn", "Izveštaj o gradskom arhivu", "Gradski arhiv: godišnji izveštaj",
        ("Svrha i obim", "Fondovi", "Skladišta", "Uslovi čuvanja", "Čitaonica", "Izgledi"),
        _lines("""
            Arhiv čuva spise gradskog veća od prve sačuvane povelje.
            Posetioci naručuju kutije dan ranije i čitaju ih pod nadzorom.
            Na svakoj kutiji stoje polica, godina i ime darodavca.
            Vlažni zidovi u severnom podrumu popravljeni su pre jesenjih kiša.
            Dobrovoljci su prepisali četiri hiljade pisama i ukratko opisali svako.
            Najstarija mapa prikazuje mlin koji više ne stoji pored mosta.
            Za pozajmicu drugim muzejima potrebni su potpisi dva člana uprave.
            Cene prepisa se nisu menjale već sedam godina.
        """),
        _table("Prostorija | Kutije | Površina | Otvoreno", "Podrum | 412 | 85,5 | 2011",
               "Tavan | 96 | 40,0 | 2018", "Dogradnja | 1 205 | 210,7 | 2003"),
        ("Naručiti kutije", "Potpisati se u knjigu", "Ostaviti torbe na ulazu",
         "Koristiti samo olovke"),
        "Prebrojala su dva službenika poslednjeg radnog dana u decembru.",
        ("Poglavlje", "Član"),
    ),
    Words(
        "mk", "Извештај за градскиот архив", "Градски архив: годишен извештај",
        ("Цел и опфат", "Фондови", "Складишта", "Услови за чување", "Читална", "Изгледи"),
        _lines("""
            Архивот ги чува списите на градскиот совет од првата сочувана повелба.
            Посетителите нарачуваат кутии еден ден порано и ги читаат под надзор.
            На секоја кутија стојат полицата, годината и името на дарителот.
            Влажните ѕидови во северниот подрум беа поправени пред есенските дождови.
            Доброволци препишаа четири илјади писма и накратко го опишаа секое.
            Најстарата карта прикажува воденица што веќе не стои покрај мостот.
            За позајмица на други музеи се потребни потписите на двајца членови.
            Цените за преписи не се менувани веќе седум години.
        """),
        _table("Просторија | Кутии | Површина | Отворено", "Подрум | 412 | 85,5 | 2011",
               "Таван | 96 | 40,0 | 2018", "Доградба | 1 205 | 210,7 | 2003"),
        ("Нарачајте кутии", "Потпишете се во книгата", "Оставете ги торбите на влезот",
         "Користете само моливи"),
        "Избројано на последниот работен ден во декември од двајца службеници.",
        ("Глава", "Член"),
    ),
    Words(
        "hr", "Izvješće o gradskom arhivu", "Gradski arhiv: godišnje izvješće",
        ("Svrha i opseg", "Zbirke", "Spremišta", "Uvjeti čuvanja", "Čitaonica", "Izgledi"),
        _lines("""
            Arhiv čuva spise gradskog vijeća od prve sačuvane povelje.
            Posjetitelji naručuju kutije dan prije i čitaju ih pod nadzorom.
            Na svakoj kutiji stoje polica, godina i ime darovatelja.
            Vlažni zidovi u sjevernom podrumu popravljeni su prije jesenskih kiša.
            Dobrovoljci su prepisali četiri tisuće pisama i ukratko opisali svako.
            Najstariji zemljovid prikazuje mlin koji više ne stoji uz most.
            Za posudbu drugim muzejima potrebni su potpisi dvaju članova uprave.
            Cijene prijepisa nisu se mijenjale već sedam godina.
        """),
        _table("Prostorija | Kutije | Površina | Otvoreno", "Podrum | 412 | 85,5 | 2011",
               "Potkrovlje | 96 | 40,0 | 2018", "Dogradnja | 1 205 | 210,7 | 2003"),
        ("Naručiti kutije", "Potpisati se u knjigu", "Ostaviti torbe na ulazu",
         "Rabiti samo olovke"),
        "Prebrojila su dva službenika posljednjega radnog dana u prosincu.",
        ("Poglavlje", "Članak"),
    ),
    Words(
        "sl", "Poročilo o mestnem arhivu", "Mestni arhiv: letno poročilo",
        ("Namen in obseg", "Zbirke", "Skladišča", "Pogoji hrambe", "Čitalnica", "Obeti"),
        _lines("""
            Arhiv hrani spise mestnega sveta od prve ohranjene listine.
            Obiskovalci naročijo škatle dan prej in jih berejo pod nadzorom.
            Na vsaki škatli so navedeni polica, leto in ime darovalca.
            Vlažne stene v severni kleti so popravili pred jesenskim deževjem.
            Prostovoljci so prepisali štiri tisoč pisem in vsako na kratko opisali.
            Najstarejši zemljevid kaže mlin, ki ne stoji več ob mostu.
            Za izposojo drugim muzejem sta potrebna podpisa dveh članov uprave.
            Cene prepisov se že sedem let niso spremenile.
        """),
        _table("Prostor | Škatle | Površina | Odprto", "Klet | 412 | 85,5 | 2011",
               "Podstrešje | 96 | 40,0 | 2018", "Prizidek | 1 205 | 210,7 | 2003"),
        ("Naročite škatle", "Podpišite se v knjigo", "Torbe pustite pri vhodu",
         "Uporabljajte samo svinčnike"),
        "Preštela sta dva uslužbenca zadnji delovni dan v decembru.",
        ("Poglavje", "Člen"),
    ),
)  # fmt: skip
